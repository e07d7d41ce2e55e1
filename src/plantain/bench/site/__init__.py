"""A leaderboard of submissions as a static site."""
