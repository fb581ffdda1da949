"""How the tests of this folder train trees: LightGBM's own lambdarank unless they say otherwise."""

from cleanrank.rankers.trees import TreeParams


def trained(train, validation=None, *, observer=None, init_model=None, progress=None, **settings):
    return TreeParams(**{"implementation": "builtin", **settings}).train(
        train, validation, observer=observer, init_model=init_model, progress=progress
    )
