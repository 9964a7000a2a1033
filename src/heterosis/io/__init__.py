"""Files: data only, checked before anything is allocated, written so that a crash harms nothing."""
