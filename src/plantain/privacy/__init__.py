"""What may leave the house: whose picture a file is, and under which agreement it may go where."""
