"""The probe: what the untrained model does now, and whether training has anything to work with."""
