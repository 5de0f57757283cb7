"""The fault campaign: kills, power cuts, disk faults, damaged folders, provider faults."""
