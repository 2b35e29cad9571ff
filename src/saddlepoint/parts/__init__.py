"""What problems are made of: functions, couplings, and shards of them on several processes."""
