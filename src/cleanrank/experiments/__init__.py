"""Grids of experiments: recipes in, stored cells out.

A recipe (TOML) expands to cells: data set x fold x noise x method x seed. A cell is computed by a worker,
kept in a store under the hash of its inputs, and never computed twice.
"""
