"""Networks against a loop over units, and their Jacobians against finite differences."""

import numpy as np
import pytest

from lanam.core.terms.networks import (
    ACTIVATIONS,
    Architecture,
    forward,
    initialise,
    jacobian,
    trace,
    unflatten,
)
from tests.oracles import activation, assert_close, differences, network_value

DEPTHS = [(5,), (4, 3), (3, 4, 2)]


def example(hidden_sizes, name, n_inputs=1):
    rng = np.random.default_rng(0)
    architecture = Architecture(n_inputs, hidden_sizes, name)
    return architecture, initialise(architecture, rng), rng.standard_normal((6, n_inputs))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_and_their_derivatives(name):
    h = np.linspace(-6.0, 6.0, 25) + 0.01  # relu has no slope at zero
    value, slope = ACTIVATIONS[name](h)
    assert_close(value, [activation(name, x) for x in h], "rounding")
    finite = [(activation(name, x + 1e-6) - activation(name, x - 1e-6)) / 2e-6 for x in h]
    assert_close(slope, finite, "finite differences")


@pytest.mark.parametrize("n_inputs", [1, 2])
@pytest.mark.parametrize("hidden_sizes", DEPTHS)
@pytest.mark.parametrize("name", ACTIVATIONS)
class TestDerivatives:
    def test_values_are_a_loop_over_units(self, name, hidden_sizes, n_inputs):
        architecture, theta, inputs = example(hidden_sizes, name, n_inputs)
        expected = [network_value(hidden_sizes, name, theta, point) for point in inputs]
        assert_close(forward(architecture, theta, inputs), expected, "rounding")
        assert_close(trace(architecture, theta, inputs).values, expected, "rounding")

    def test_jacobian_is_the_finite_difference(self, name, hidden_sizes, n_inputs):
        architecture, theta, inputs = example(hidden_sizes, name, n_inputs)

        def values(at):
            return [network_value(hidden_sizes, name, at, point) for point in inputs]

        found, slopes = jacobian(architecture, theta, inputs)
        assert_close(found, values(theta), "rounding")
        assert_close(slopes, differences(values, theta), "finite differences")


@pytest.mark.parametrize("hidden_sizes", DEPTHS)
def test_a_jacobian_consists_of_outer_products(hidden_sizes):
    architecture, theta, inputs = example(hidden_sizes, "tanh", 2)
    sweep = trace(architecture, theta, inputs)
    parts = []
    for before, signal in zip(sweep.activations[:-1], sweep.signals, strict=True):
        parts += [np.einsum("bi,bj->bij", before, signal).reshape(len(inputs), -1), signal]
    parts.append(sweep.activations[-1])
    assert_close(np.hstack(parts), jacobian(architecture, theta, inputs)[1], "rounding")


@pytest.mark.parametrize("hidden_sizes", DEPTHS)
def test_the_network_is_one_of_its_tangent_functions(hidden_sizes):
    # The output is linear in the last layer: J's last columns times w is f itself.
    architecture, theta, inputs = example(hidden_sizes, "gelu")
    values, slopes = jacobian(architecture, theta, inputs)
    last = unflatten(architecture, theta)[-1]
    assert_close(slopes[:, -len(last) :] @ last, values, "rounding")


def test_tensors_are_views_in_order():
    architecture = Architecture(2, (3, 4), "gelu")
    assert architecture.shapes == ((2, 3), (3,), (3, 4), (4,), (4,))
    assert architecture.n_parameters == 6 + 3 + 12 + 4 + 4
    theta = np.arange(29.0)
    tensors = unflatten(architecture, theta)
    assert [tensor.shape for tensor in tensors] == list(architecture.shapes)
    np.testing.assert_array_equal(np.concatenate([t.ravel() for t in tensors]), theta)
    assert all(tensor.base is not None for tensor in tensors)


class TestGroups:
    def test_a_group_per_tensor_and_band(self):
        architecture = Architecture(1, (6,), "gelu", scales=(1.0, 4.0, 16.0))
        np.testing.assert_array_equal(architecture.band_of_unit, [0, 0, 1, 1, 2, 2])
        np.testing.assert_array_equal(
            architecture.group_index, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8]
        )

    def test_deeper_layers_have_one_group_per_tensor(self):
        architecture = Architecture(1, (2, 3), "gelu", scales=(1.0, 4.0))
        expected = [0, 1, 2, 3] + [4] * 6 + [5] * 3 + [6] * 3
        np.testing.assert_array_equal(architecture.group_index, expected)

    def test_more_scales_than_units(self):
        architecture = Architecture(1, (2,), "gelu", scales=(1.0, 4.0, 16.0))
        np.testing.assert_array_equal(architecture.band_of_unit, [0, 1])
        assert len(architecture.group_index) == architecture.n_parameters
        np.testing.assert_array_equal(architecture.band_index, [0, 1] * 3)

    def test_a_band_has_the_weights_biases_and_outputs_of_its_units(self):
        architecture = Architecture(2, (6,), "gelu", scales=(1.0, 4.0, 16.0))
        np.testing.assert_array_equal(architecture.band_index, [0, 0, 1, 1, 2, 2] * 4)
        # W_1 (2 x 2) and b_1 by unit, then W_2, b_2 and w together.
        deep = Architecture(2, (2, 3), "gelu", scales=(1.0, 4.0))
        expected = [0, 1] * 3 + [2] * (6 + 3 + 3)
        np.testing.assert_array_equal(deep.band_index, expected)
        one = Architecture(2, (2, 3), "gelu")
        np.testing.assert_array_equal(one.band_index, [0] * 6 + [1] * 12)


class TestInitialisation:
    def test_weights_are_uniform_within_their_layers_bound(self):
        architecture = Architecture(4, (500, 30), "gelu", scales=(1.0, 8.0))
        theta = initialise(architecture, np.random.default_rng(0))
        first, first_bias, second, second_bias, last = unflatten(architecture, theta)
        gentle, sharp = architecture.band_of_unit == 0, architecture.band_of_unit == 1
        # The largest of these uniform numbers is within 2% of the bound (10% for 30 of them).
        for tensor, bound, slack in [
            (first[:, gentle], 0.5, 0.02),
            (first[:, sharp], 4.0, 0.02),
            (first_bias[gentle], 0.5, 0.02),
            (first_bias[sharp], 4.0, 0.02),
            (second, 500**-0.5, 0.02),
            (second_bias, 500**-0.5, 0.1),
            (last, 30**-0.5, 0.1),
        ]:
            assert bound * (1 - slack) < np.abs(tensor).max() <= bound
            assert abs(tensor.mean()) < 4 * bound / np.sqrt(3 * tensor.size)

    def test_units_have_their_kinks_at_their_centres(self):
        architecture = Architecture(2, (5,), "relu")
        centres = np.random.default_rng(1).standard_normal((5, 2))
        theta = initialise(architecture, np.random.default_rng(0), centres)
        weight, bias, _ = unflatten(architecture, theta)
        for unit in range(5):
            assert centres[unit] @ weight[:, unit] + bias[unit] == pytest.approx(0.0, abs=1e-12)
            assert np.abs(weight[:, unit]).max() > 0.0
