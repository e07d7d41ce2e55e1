"""What other rooms ask of the journal, a function each: its tables are known nowhere else."""
