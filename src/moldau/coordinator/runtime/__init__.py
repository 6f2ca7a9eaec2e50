"""What group and transaction coordinators share: decisions, their records, replies that wait, deadlines."""
