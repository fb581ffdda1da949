"""Work on a Dask cluster: models that are independent side by side, and one model by all workers together."""
