"""Pictures, by Matplotlib; colours that colour-blind readers can tell apart."""
