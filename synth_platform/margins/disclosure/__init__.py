"""What released margins let somebody infer."""
