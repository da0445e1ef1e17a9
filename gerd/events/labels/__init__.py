"""What is seen of each actor, how it moves, and whose edge caused an event: `coverage`, and its compiled parts."""
