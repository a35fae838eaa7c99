# SPDX-License-Identifier: Apache-2.0
"""SciPy and scikit-learn compute with cuplug arrays, by functions of the array API standard."""

import textwrap
from importlib.util import find_spec

import pytest

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
PRELUDE = """
import numpy as np
import cuplug
random = np.random.default_rng(0)
x, y = random.normal(size=(50, 4)), random.normal(size=(50, 4))

def check(name, function):
    wanted, found = function(x, y), function(*(cuplug.asarray(a) for a in (x, y)))
    assert isinstance(found, cuplug.Array), (name, type(found))
    np.testing.assert_allclose(found.numpy(), wanted, 1e-10, 1e-12, err_msg=name)
"""
SCIPY = """
from scipy import constants, integrate, special, stats
from scipy.optimize import elementwise
FUNCTIONS = {
    "logsumexp": lambda x, y: special.logsumexp(x, axis=0),
    "softmax": lambda x, y: special.softmax(x, axis=1),
    "skew": lambda x, y: stats.skew(x),
    "kurtosis": lambda x, y: stats.kurtosis(x, axis=1),
    "zscore": lambda x, y: stats.zscore(x),
    "gmean": lambda x, y: stats.gmean(x * x),
    "variation": lambda x, y: stats.variation(y),
    "trapezoid": lambda x, y: integrate.trapezoid(x, axis=0),
    "convert_temperature": lambda x, y: constants.convert_temperature(x, "C", "K"),
    "find_root": lambda x, y: elementwise.find_root(
        lambda t, c: t**3 - c, (x * 0 - 10.0, x * 0 + 10.0), args=(y,)).x,
}
for item in FUNCTIONS.items():
    check(*item)
"""
ON_THE_HOST = """
for name in ("erf", "expit", "entr"):
    check(name, lambda x, y: getattr(special, name)(x * x))
check("ttest_ind", lambda x, y: stats.ttest_ind(x, y).statistic)
"""
SKLEARN = """
import sklearn
from sklearn import metrics, preprocessing
with sklearn.config_context(array_api_dispatch=True):
    for estimator in (preprocessing.StandardScaler(), preprocessing.MinMaxScaler()):
        check(type(estimator).__name__, lambda x, y: estimator.fit(x).transform(y))
    own = [cuplug.asarray(a[:, 0]) for a in (x, y)]
    assert abs(metrics.r2_score(*own) - metrics.r2_score(x[:, 0], y[:, 0])) < 1e-12
"""


def run(run_python, body, device):
    env = {"SCIPY_ARRAY_API": "1", "CUPLUG_DEVICE": device}
    done = run_python(textwrap.dedent(PRELUDE + body), env, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.skipif(find_spec("scipy") is None, reason="needs SciPy")
@pytest.mark.parametrize("device", DEVICES)
def test_functions_of_scipy(run_python, device):
    run(run_python, SCIPY + ON_THE_HOST * (device == "cpu"), device)


@pytest.mark.skipif(find_spec("sklearn") is None, reason="needs scikit-learn")
@pytest.mark.parametrize("device", DEVICES)
def test_estimators_of_scikit_learn(run_python, device):
    run(run_python, SKLEARN, device)
