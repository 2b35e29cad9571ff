"""Readers of problem files, game files and array files."""

from saddlepoint.problems.files.problem_file import ProblemFile, load_problem

__all__ = ["ProblemFile", "load_problem"]
