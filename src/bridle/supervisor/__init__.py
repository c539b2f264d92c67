"""Many agents on one machine, each durable: they outlive the process that looks after them."""
