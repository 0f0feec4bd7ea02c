"""What an archive holds, in numbers, and how well its maps tell it."""
