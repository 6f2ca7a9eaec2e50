"""kafka-transactions: shows open and hanging transactions, and aborts them."""
