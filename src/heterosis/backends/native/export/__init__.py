"""Programs as shared libraries that need neither Python nor this package."""
