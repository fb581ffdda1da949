"""Files of tools for judging search: OpenSearch, Quepid, RRE, Label Studio, logs of the LTR plugin."""
