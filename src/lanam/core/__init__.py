"""Arrays only: the method itself. Nothing here knows of frames, estimators or drawings."""
