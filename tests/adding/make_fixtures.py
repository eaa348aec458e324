"""Makes the model files of ``fixtures/``, which the tests take as a user's own.

    pip install skl2onnx pandas lightgbm xgboost-cpu onnxmltools      # in an environment of its own
    python tests/adding/make_fixtures.py sklearn boosted
    .envs/torch/bin/python tests/adding/make_fixtures.py torch
    pip install xgboost==2.1.4 lightgbm==4.7.0 treelite==4.4.1        # in another one
    python tests/adding/make_fixtures.py forests

The files are committed: they come from packages that set-up does not install, and an export takes seconds.
"""

# mypy: ignore-errors
# None of these packages is in the environment that checks types.

import sys
from pathlib import Path

FIXTURES = Path(__file__).with_name("fixtures")
OPSET = 17  # the last that the ONNX Runtime of every release of the catalogue reads


def save(name, model):
    """Write a model with the oldest file format that its operators allow."""
    from onnx.helper import find_min_ir_version_for

    model.ir_version = find_min_ir_version_for(model.opset_import)
    (FIXTURES / name).write_bytes(model.SerializeToString(deterministic=True))


def make_sklearn():
    """A classifier (with zipmap and without), a regressor, and a pipeline over columns of numbers and of texts."""
    import numpy as np
    import pandas
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    from sklearn.compose import ColumnTransformer
    from sklearn.datasets import load_diabetes, load_iris
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    opset = {"": OPSET, "ai.onnx.ml": 3}
    features, labels = load_iris(return_X_y=True)
    sample = features[:1].astype(np.float32)
    classifier = LogisticRegression(max_iter=500).fit(features, labels)
    save("classifier.onnx", to_onnx(classifier, sample, target_opset=opset, options={"zipmap": False}))
    save("zipmap.onnx", to_onnx(classifier, sample, target_opset=opset))

    features, targets = load_diabetes(return_X_y=True)
    regressor = RandomForestRegressor(n_estimators=5, max_depth=4, random_state=0).fit(features, targets)
    save("regressor.onnx", to_onnx(regressor, features[:1].astype(np.float32), target_opset=opset))

    table = pandas.DataFrame({"age": [20.0, 40.0, 60.0, 30.0], "city": ["Oslo", "Rome", "Rome", "Oslo"]})
    columns = ColumnTransformer([("scale", StandardScaler(), ["age"]), ("city", OneHotEncoder(), ["city"])])
    pipeline = make_pipeline(columns, LogisticRegression()).fit(table, [0, 1, 1, 0])
    given = [("age", FloatTensorType([None, 1])), ("city", StringTensorType([None, 1]))]
    save("pipeline.onnx", to_onnx(pipeline, initial_types=given, target_opset=opset, options={"zipmap": False}))


def make_boosted():
    """Gradient-boosted trees by way of onnxmltools."""
    import lightgbm
    import numpy as np
    import onnxmltools
    import xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType

    draw = np.random.default_rng(0)
    features = draw.random((200, 4), dtype=np.float32)
    labels = (features[:, 0] > features[:, 1]).astype(int)
    given = [("features", FloatTensorType([None, 4]))]
    booster = lightgbm.LGBMClassifier(n_estimators=3, num_leaves=4, verbose=-1).fit(features, labels)
    save("lightgbm.onnx", onnxmltools.convert_lightgbm(booster, initial_types=given, zipmap=False, target_opset=15))
    booster = xgboost.XGBRegressor(n_estimators=3, max_depth=2).fit(features, features.sum(axis=1))
    save("xgboost.onnx", onnxmltools.convert_xgboost(booster, initial_types=given, target_opset=15))


def make_forests():
    """Gradient-boosted trees as XGBoost's JSON and UBJSON, LightGBM's text and treelite's checkpoint."""
    import lightgbm
    import numpy as np
    import treelite
    import xgboost

    draw = np.random.default_rng(0)
    features = draw.random((200, 4), dtype=np.float32)
    for name, objective, labels in (
        ("forest.json", {"objective": "binary:logistic"}, features[:, 0] > features[:, 1]),
        ("forest.ubj", {"objective": "multi:softprob", "num_class": 3}, (features[:, 0] * 3).astype(int)),
    ):
        data = xgboost.DMatrix(features, label=labels)
        xgboost.train({"max_depth": 2, **objective}, data, 2).save_model(FIXTURES / name)
    data = lightgbm.Dataset(features, label=features.sum(axis=1))
    booster = lightgbm.train({"objective": "regression", "num_leaves": 4, "verbose": -1}, data, 2)
    booster.save_model(FIXTURES / "forest.txt")
    treelite.frontend.load_lightgbm_model(str(FIXTURES / "forest.txt")).serialize(str(FIXTURES / "forest.tl"))


def make_torch():
    """A small network as TorchScript, traced and with two inputs, and exported to ONNX with a dynamic batch."""
    import torch

    class Pair(torch.nn.Module):
        """Scores a pair of texts by their tokens: of any length, with a mask."""

        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(16, 4)
            self.score = torch.nn.Linear(4, 2)

        def forward(self, ids, mask):
            """Logits of two classes, and the mean vector."""
            weights = mask.unsqueeze(-1).to(torch.float32)
            mean = (self.table(ids) * weights).sum(1) / weights.sum(1).clamp(min=1.0)
            return self.score(mean), mean

    torch.manual_seed(0)
    pair, image = Pair().eval(), torch.nn.Sequential(torch.nn.Conv2d(3, 2, 3), torch.nn.AdaptiveAvgPool2d(1)).eval()
    ids = torch.ones(2, 8, dtype=torch.int64)
    torch.jit.trace(pair, (ids, ids)).save(str(FIXTURES / "pair.pt"))
    torch.save(pair.state_dict(), FIXTURES / "weights.pt")
    import onnx

    torch.onnx.export(
        image, (torch.rand(2, 3, 32, 32),), FIXTURES / "image.onnx", input_names=["pixels"], output_names=["means"],
        dynamic_shapes=({0: torch.export.Dim("batch")},), opset_version=18, external_data=False,
    )  # fmt: skip
    save("image.onnx", onnx.load(FIXTURES / "image.onnx"))


if __name__ == "__main__":
    FIXTURES.mkdir(exist_ok=True)
    for kind in sys.argv[1:]:
        {"sklearn": make_sklearn, "boosted": make_boosted, "forests": make_forests, "torch": make_torch}[kind]()
