"""One small file a format. Each tells its format by content (``sniff``) and reads one run of it (``read``)."""
