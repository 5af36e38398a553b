"""The distribution of maximum entropy that has given margins, by three engines."""
