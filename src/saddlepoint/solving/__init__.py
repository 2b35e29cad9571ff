"""Running a method on a problem: options, the loop, certificates, the schedule of methods, checkpoints and results."""
