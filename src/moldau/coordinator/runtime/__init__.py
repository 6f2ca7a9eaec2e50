"""What group and transaction coordinators share: decisions, their records, pending replies, deadlines."""
