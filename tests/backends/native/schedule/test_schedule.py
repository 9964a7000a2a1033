"""What becomes one loop nest, what needs memory, and which dimensions are left."""

import cProfile
from functools import reduce

import pytest

from heterosis.autograd.reverse import cotangents
from heterosis.backends.native.codegen.emit.program import function_for_known_sizes
from heterosis.backends.native.codegen.kernel import Machine, OpaqueCall
from heterosis.backends.native.codegen.nest import Apply, Buffer, Load, Nest, Reduce
from heterosis.backends.native.codegen.target import AVX2
from heterosis.backends.native.loops import inlining
from heterosis.backends.native.loops.inlining import Loops
from heterosis.backends.native.schedule.materialize import compared_sums, kept_values
from heterosis.backends.native.schedule.schedule import schedule
from heterosis.ir import views
from heterosis.ir.program import ASSEMBLE, INPUT, Program, apply, constant
from heterosis.ir.strided import Strided
from heterosis.ir.types import TensorType
from heterosis.ops import REGISTRY
from heterosis.passes.pipeline import optimized
from heterosis.runtime.errors import ScheduleError
from heterosis.runtime.settings import settings

MACHINE = Machine(AVX2, 2)
add, multiply, subtract, exp, sqrt = (
    REGISTRY[n].operation for n in ("add", "multiply", "subtract", "exp", "sqrt")
)
total, largest, divide = (REGISTRY[n].operation for n in ("sum", "max", "true_divide"))
matmul, mean = REGISTRY["matmul"].operation, REGISTRY["mean"].operation


def array(*shape):
    return apply(INPUT, (), TensorType(shape, "float32"))


def planned(inputs, *outputs, layouts=None, share=False):
    layouts = layouts or [Strided.contiguous(v.shape) for v in inputs]
    program = Program(tuple(inputs), outputs)
    return schedule(program, layouts, [None] * len(outputs), MACHINE, views=share)


def optimized_plan(inputs, *outputs):
    layouts = [Strided.contiguous(v.shape) for v in inputs]
    program = Program(tuple(inputs), outputs)
    kept = kept_values(program)
    return schedule(program, layouts, [None] * len(outputs), MACHINE, views=True, kept=kept)


def only_nest(found) -> Nest:
    (nest,) = found.kernels
    assert isinstance(nest, Nest)
    return nest


def reductions(nest: Nest) -> int:
    return sum(isinstance(step, Reduce) for step in nest.steps)


def test_a_chain_of_elementwise_work_is_one_flat_loop():
    x, y = array(4, 5), array(4, 5)
    nest = only_nest(planned([x, y], exp(multiply(add(x, y), x))))
    assert nest.kept == (20,)
    assert nest.reduced == ()


def test_broadcasting_keeps_the_dimensions_it_needs():
    x, y = array(4, 5), array(5)
    assert only_nest(planned([x, y], add(x, y))).kept == (4, 5)


def test_a_transposed_operand_is_read_with_strides():
    x, y = array(5, 4), array(4, 5)
    found = planned([x, y], add(views.transpose(x, (1, 0)), y))
    assert only_nest(found).kept == (4, 5)
    assert found.workspace == 0


def softmax(x):
    e = exp(subtract(x, largest(x, axis=-1, keepdims=True)))
    return divide(e, total(e, axis=-1, keepdims=True))


@pytest.mark.parametrize("shape", [(30, 40), (1, 5, 6, 40)])
def test_softmax_is_one_nest_that_computes_its_exponentials_once(shape):
    x = array(*shape)
    nest = only_nest(planned([x], softmax(x)))
    assert (nest.kept, nest.reduced) == ((30,), (40,))
    assert sum(isinstance(step, Apply) and step.primitive.name == "exp" for step in nest.steps) == 1
    assert reductions(nest) == 2
    assert len(nest.stores) == 2  # the exponentials on their way, and the result


def test_a_variance_is_one_nest():
    x = array(30, 40)
    centred = subtract(x, mean(x, axis=1, keepdims=True))
    nest = only_nest(planned([x], mean(multiply(centred, centred), axis=1)))
    assert reductions(nest) == 2


def test_reductions_along_different_axes_are_nests_of_their_own():
    x = array(30, 40)
    both = add(total(x, axis=0), total(x))
    assert len(planned([x], both).kernels) == 2


def test_a_long_reduction_to_one_element_is_cut_into_pieces():
    x = array(1 << 20)
    found = planned([x], total(x))
    assert found.kernels[0].kept == (32,)
    assert found.workspace > 0


def test_elementwise_work_before_a_product_gets_memory():
    x, y = array(4, 5), array(5, 6)
    found = planned([x, y], matmul(exp(x), y))
    assert [type(k) for k in found.kernels] == [Nest, OpaqueCall]
    assert found.workspace >= 80


def test_a_rearranged_input_is_a_view_where_that_is_allowed():
    x = array(4, 6)
    moved = views.transpose(views.reshape(x, (2, 2, 6)), (2, 0, 1))
    found = planned([x], moved, share=True)
    assert not found.kernels
    assert found.views[0] == (0, Strided((6, 2, 2), (1, 12, 6)))
    assert len(planned([x], moved).kernels) == 1


def test_a_reshape_that_strides_cannot_express_copies_first():
    x = array(4, 6)
    flat = views.reshape(views.transpose(x, (1, 0)), (24,))
    found = planned([x], add(flat, flat))
    assert len(found.kernels) == 2
    assert found.workspace >= 96


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_loops_without_points_are_left_out(shape):
    x = array(*shape)
    assert not planned([x], exp(x)).kernels


def test_a_sum_over_nothing_still_writes_its_zeros():
    x = array(3, 0)
    nest = only_nest(planned([x], total(x, axis=1)))
    assert nest.kept == (3,)


def test_each_input_is_loaded_once_a_pass():
    x = array(8)
    nest = only_nest(planned([x], add(multiply(x, x), x)))
    assert sum(isinstance(step, Load) for step in nest.steps) == 1


def test_part_of_a_sum_is_not_joined_as_if_it_were_the_whole():
    x, y = array(30, 40), array(10)
    first = views.slice_(total(x, axis=0), (0,), (1,), (10,))
    nests = planned([x, y], add(first, y)).kernels
    assert [nest.kept for nest in nests] == [(40,), (10,)]
    assert [reductions(nest) for nest in nests] == [1, 0]


def test_vectors_run_where_least_is_gathered():
    x, row, other = array(30, 40), array(30, 1), array(30, 1)
    along_columns = multiply(multiply(x, x), multiply(row, other))
    assert only_nest(planned([x, row, other], total(along_columns, axis=0))).vector == "kept"
    assert only_nest(planned([x, row, other], total(along_columns, axis=1))).vector == "reduced"


@pytest.mark.parametrize(
    "shape, vector",
    [
        ((200, 3), "kept"),
        ((200, 4), "kept"),
        ((200, 5), "rows"),
        ((200, 32), "rows"),
        ((200, 33), "reduced"),
        ((20, 5), "reduced"),
        ((20, 3), "reduced"),
        ((7, 200, 2), "kept"),
    ],
)
def test_vectors_are_of_rows_where_these_are_short(shape, vector):
    x = array(*shape)
    assert only_nest(planned([x], total(x, axis=len(shape) - 1))).vector == vector


def test_parts_that_share_work_are_one_nest():
    x, dy = array(2, 3, 8, 8), array(2, 3, 4, 4)
    gradient = REGISTRY["pooling_gradient"].operation
    nest = only_nest(planned([dy, x], gradient(dy, x, (2, 2), stride=(2, 2))))
    assert len(nest.stores) == 4
    assert sum(isinstance(step, Load) for step in nest.steps) == 5


def test_parts_that_overlap_are_written_in_order():
    x = array(6)
    shared = exp(x)
    places = (((0,), (1,)), ((3,), (1,)))
    type_ = TensorType((9,), "float32")
    both = (add(shared, x), multiply(shared, x))
    whole = apply(ASSEMBLE, both, type_, places=places, filled=False)
    assert len(planned([x], whole).kernels) == 2


def test_the_gradient_of_a_transposed_matrix_is_written_without_a_copy():
    x, w, dy = array(6, 5), array(4, 5), array(6, 4)
    y = matmul(x, views.transpose(w, (1, 0)))
    (dw,) = cotangents([y], [dy], [w], ())
    (call,) = planned([x, dy], dw).kernels
    assert isinstance(call, OpaqueCall)


def test_a_rearranged_product_is_written_where_it_will_stand():
    x, y = array(4, 5), array(5, 6)
    found = planned([x, y], views.reshape(matmul(x, y), (24,)))
    assert [type(k) for k in found.kernels] == [OpaqueCall]
    assert not found.temporaries


@pytest.mark.parametrize("step", [lambda x, w: matmul(exp(x), w), lambda x, w: exp(add(x, w))])
def test_long_programs_do_not_exhaust_the_stack(step):
    x, w = array(4, 4), array(4, 4)
    value = x
    for _ in range(400):
        value = step(value, w)
    found = optimized_plan([x, w], value)
    assert len(found.kernels) >= 5
    assert len(set(found.starts)) <= 3


def loads(nest: Nest) -> int:
    return sum(isinstance(step, Load) for step in nest.steps)


def test_a_residual_chain_is_not_computed_again_in_every_block():
    x, w = array(8, 8), array(8, 8)
    value = x
    for _ in range(6):
        value = add(value, matmul(exp(value), w))
    found = optimized_plan([x, w], value)
    assert max(loads(k) for k in found.kernels if isinstance(k, Nest)) == 1
    assert len(found.kernels) == 12  # the sum is done by the product


def test_what_one_nest_needs_twice_stays_inside():
    x, y, w = array(30, 40), array(30, 40), array(40, 5)
    found = optimized_plan([x, y, w], matmul(softmax(multiply(x, y)), w))
    assert [type(k) for k in found.kernels] == [Nest, OpaqueCall]


def test_what_two_results_need_is_computed_once():
    x, y = array(30, 40), array(30, 40)
    scores = multiply(x, y)
    found = optimized_plan([x, y], softmax(scores), total(scores, axis=0))
    assert len(found.kernels) == 3
    assert [loads(k) for k in found.kernels] == [2, 2, 1]  # softmax reads its exponentials back


def test_a_result_that_others_need_is_read_where_it_stands():
    x, w = array(8, 8), array(8, 8)
    y = add(x, w)
    found = optimized_plan([x, w], matmul(y, w), y)
    assert len(found.kernels) == 2
    assert not [t for t in found.temporaries if t == 256]


def test_gradients_of_weights_are_computed_as_soon_as_what_they_are_made_of():
    x, *weights = array(8, 16), *(array(16, 16) for _ in range(4))
    values = [x]
    for w in weights:
        values.append(matmul(values[-1], w))
    slope, made = values[-1], []
    for w, value in zip(reversed(weights), reversed(values[:-1]), strict=True):
        made.append(matmul(views.transpose(value, (1, 0)), slope).node)
        slope = matmul(slope, views.transpose(w, (1, 0)))
    plan = optimized_plan([x, *weights], *(node.outputs[0] for node in reversed(made)))
    order = [kernel.node for kernel in plan.kernels]
    assert [node for node in order if node in made] == made
    assert order.index(made[0]) < order.index(made[1].inputs[1].node)


def test_a_rearranged_operand_is_computed_once():
    x, w = array(4, 6), array(4, 5)
    y = exp(x)
    found = optimized_plan([x, w], matmul(views.transpose(y, (1, 0)), w), add(y, y))
    assert len(found.kernels) == 3
    assert loads(found.kernels[-1]) == 1


def activated(x):
    """An activation and its slope, which share an exponential."""
    e = exp(x)
    return multiply(x, e), add(multiply(x, e), e)


def stores(found) -> list[int]:
    return [len(k.stores) for k in found.kernels if isinstance(k, Nest)]


def test_an_activation_and_its_slope_take_the_place_of_what_they_are_made_of():
    x, w, bias, v, g = array(8, 16), array(16, 16), array(16), array(16, 16), array(8, 16)
    y, slope = activated(views.reshape(add(matmul(x, w), bias), (2, 4, 16)))
    y, slope = (views.reshape(made, (8, 16)) for made in (y, slope))
    inputs = [x, w, bias, v, g]
    found = optimized_plan(inputs, matmul(matmul(y, v), v), multiply(matmul(g, v), slope))
    assert stores(found) == [2]
    assert [type(k) for k in found.kernels] == [OpaqueCall, Nest, *[OpaqueCall] * 3]


def test_an_array_that_others_need_stays_and_what_is_made_of_it_is_kept_as_before():
    x, w, v, g = array(8, 16), array(16, 16), array(16, 16), array(8, 16)
    z = matmul(x, w)
    y, slope = activated(z)
    back = multiply(matmul(g, v), slope)
    for others in ([z], [matmul(z, v)], [total(z, axis=0)]):
        found = optimized_plan([x, w, v, g], matmul(y, v), back, *others)
        assert max(stores(found)) == 1


def test_an_array_stays_rather_than_as_many_that_are_made_of_it():
    x, w, g = array(8, 16), array(16, 16), array(8, 16)
    y, slope = activated(matmul(x, w))
    found = optimized_plan([x, w, g], total(multiply(y, g), axis=0), total(slope, axis=1))
    assert max(stores(found)) == 1


def test_a_product_is_read_transposed_by_the_next_without_a_copy():
    x, y, z = array(6, 5), array(5, 4), array(6, 3)
    found = planned([x, y, z], matmul(views.transpose(matmul(x, y), (1, 0)), z))
    assert [type(kernel) for kernel in found.kernels] == [OpaqueCall, OpaqueCall]


def with_channels_last(filters, **attributes):
    """An image whose channels are last in memory, and what it is convolved with."""
    x = array(2, 9, 9, 3)
    image = views.transpose(x, (0, 3, 1, 2))
    convolution = REGISTRY["convolution"].operation
    attributes |= {"kernel": (3, 3), "num_filter": 5, "no_bias": True}
    return [x, *filters], [convolution(image, each, **attributes) for each in filters]


@pytest.mark.parametrize("stride, nests", [(1, 1), (2, 1), (4, 0)])
def test_an_image_with_its_channels_last_is_copied_if_windows_are_close(stride, nests):
    inputs, outputs = with_channels_last([array(5, 3, 3, 3)], stride=stride)
    kinds = [isinstance(kernel, Nest) for kernel in planned(inputs, *outputs).kernels]
    assert kinds == [True] * nests + [False]


def test_kernels_that_need_a_copy_of_a_value_share_it():
    inputs, outputs = with_channels_last([array(5, 3, 3, 3) for _ in range(3)])
    program = optimized(Program(tuple(inputs), tuple(outputs)))
    found = planned(inputs, *program.outputs)
    assert [isinstance(kernel, Nest) for kernel in found.kernels] == [True, False, False, False]


def test_what_is_transposed_and_reshaped_is_copied_once():
    x, y, w = array(2, 3, 8), array(2, 8, 4), array(24, 5)
    heads = views.reshape(views.transpose(matmul(x, y), (2, 0, 1)), (1, 24))
    found = optimized_plan([x, y, w], matmul(heads, w))
    assert [type(k) for k in found.kernels] == [OpaqueCall, Nest, OpaqueCall]


def _heads_in_rows(lead):
    """Batches of products (heads, rows, columns), and their rows with all heads side by side."""
    x, y = array(*lead, 4, 3, 8), array(*lead, 4, 8, 5)
    product = matmul(x, y)
    axes = (*range(len(lead)), len(lead) + 1, len(lead), len(lead) + 2)
    return (x, y), product, views.reshape(views.transpose(product, axes), (*lead, 3, 20))


@pytest.mark.parametrize("lead", [(), (2,)])
def test_products_are_written_side_by_side_where_nothing_else_needs_them(lead):
    inputs, product, rows = _heads_in_rows(lead)
    w = array(20, 6)
    merged = matmul(views.reshape(rows, (rows.size // 20, 20)), w)
    found = optimized_plan([*inputs, w], merged)
    assert [type(k) for k in found.kernels] == [OpaqueCall, OpaqueCall]
    found = optimized_plan([*inputs, w], product, merged)
    assert [type(k) for k in found.kernels] == [OpaqueCall, Nest, OpaqueCall]


def test_heads_that_are_results_take_no_memory_besides():
    inputs, _, rows = _heads_in_rows((2,))
    found = optimized_plan(inputs, rows)
    assert [type(k) for k in found.kernels] == [OpaqueCall]
    assert not found.temporaries and not found.workspace


def test_parts_are_products_with_numbers_added_where_they_will_stand():
    """As in the gradient of queries, keys and values that are one array's parts."""
    parts = [_heads_in_rows((2,)) for _ in range(2)]
    shown = [views.reshape(add(product, 0.0), (2, 4, 3, 5)) for _, product, _ in parts]
    shown = [views.reshape(views.transpose(part, (0, 2, 1, 3)), (2, 3, 1, 20)) for part in shown]
    places = tuple(((0, 0, i, 0), (1, 1, 1, 1)) for i in range(2))
    whole = TensorType((2, 3, 2, 20), "float32")
    joined = apply(ASSEMBLE, tuple(shown), whole, places=places, filled=False)
    w = array(40, 6)
    inputs = [*parts[0][0], *parts[1][0], w]
    found = optimized_plan(inputs, matmul(views.reshape(joined, (6, 40)), w))
    assert [type(k) for k in found.kernels] == [OpaqueCall] * 3


def test_subtracting_a_repeated_mean_is_not_worth_memory():
    x, w = array(30, 40), array(40, 5)
    y = exp(x)
    centred = subtract(y, mean(y, axis=0, keepdims=True))
    variance = mean(multiply(centred, centred), axis=0, keepdims=True)
    found = optimized_plan([x, w], matmul(divide(centred, variance), w))
    assert [t for t in found.temporaries if t == 30 * 40 * 4] == [4800]


def test_a_mean_and_a_variance_that_others_need_are_one_nest():
    x = array(30, 40)
    average = mean(x, axis=0)
    centred = subtract(x, average)
    variance = mean(multiply(centred, centred), axis=0)
    running = (multiply(average, average), multiply(variance, variance))
    found = optimized_plan([x], divide(centred, variance), *running)
    statistics = found.kernels[0]
    assert reductions(statistics) == 2
    assert len(statistics.stores) == 2
    assert len(found.kernels) == 4


@pytest.mark.parametrize("use", [multiply, matmul])
def test_sums_that_are_results_are_computed_by_the_nest_that_uses_them(use):
    """As in the gradient of a normalisation, whose sums are gradients themselves."""
    x, slope, w = array(40, 40), array(40, 40), array(40, 40)
    sums = [total(v, axis=1, keepdims=True) for v in (slope, multiply(slope, x))]
    change = subtract(slope, add(sums[0], multiply(x, sums[1])))
    further = [matmul(use(change, v), w) for v in (x, w)]
    found = optimized_plan([x, slope, w], *sums, *further)
    first, *others = found.kernels
    assert reductions(first) == 2
    assert len(first.stores) == 3
    assert not any(map(reductions, (k for k in others if isinstance(k, Nest))))


def test_results_that_share_something_share_a_nest_and_others_code():
    w, dw, v, dv = inputs = [array(4, 5) for _ in range(4)]
    rate = apply(INPUT, (), TensorType((), "float32"))
    steps = [multiply(gradient, rate) for gradient in (dw, dv)]
    results = [subtract(w, steps[0]), subtract(v, steps[1]), multiply(steps[0], steps[0])]
    first, second = planned([*inputs, rate], *results).kernels
    assert [len(nest.stores) for nest in (first, second)] == [2, 1]
    apart = planned([*inputs, rate], *results[:2])
    assert len(apart.kernels) == 2
    assert len(function_for_known_sizes(apart).units) == 1
    through = planned([w, rate], multiply(w, rate), subtract(total(w, axis=1), rate)).kernels
    assert len(through) == 2


def _by_adam(weight, change, mean, squares):
    """New means, squares and weights, and what is between."""
    mean = add(multiply(mean, 0.9), multiply(change, 0.1))
    squares = add(multiply(squares, 0.99), multiply(multiply(change, change), 0.01))
    return subtract(weight, divide(mean, add(sqrt(squares), 1e-8))), mean, squares


@pytest.mark.parametrize("of", ["a product", "a sum"])
def test_new_states_and_parameters_are_one_nest(of):
    w, m, v = array(4, 5), array(4, 5), array(4, 5)
    x, y = (array(4, 6), array(6, 5)) if of == "a product" else (array(6, 4, 5), array(1))
    gradient = matmul(x, y) if of == "a product" else total(x, axis=0)
    change = add(multiply(gradient, 0.5), multiply(w, 0.1))
    found = optimized_plan([x, y, w, m, v], *_by_adam(w, change, m, v))
    first, update = found.kernels
    assert isinstance(first, OpaqueCall) == (of == "a product")
    assert len(update.stores) == 3 and update.kept == (20,)
    assert sum(isinstance(step, Load) for step in update.steps) == 4
    assert found.temporaries == [80]


def test_states_that_are_used_elsewhere_are_computed_first():
    w, m, v, x = array(4, 5), array(4, 5), array(4, 5), array(5, 3)
    results = _by_adam(w, multiply(w, 0.1), m, v)
    found = optimized_plan([w, m, v, x], *results, matmul(results[0], x))
    *updates, product = found.kernels
    assert isinstance(product, OpaqueCall) and all(isinstance(nest, Nest) for nest in updates)
    assert product.inputs[0].buffer in {s.operand.buffer for nest in updates for s in nest.stores}


def test_what_shares_numbers_or_has_parts_of_an_array_is_apart():
    x = array(2, 4, 5)
    half = views.broadcast(constant(0.5, "float32"), (4, 5))
    first, second = (
        views.reshape(views.slice_(x, (i, 0, 0), (1, 1, 1), (1, 4, 5)), (4, 5)) for i in range(2)
    )
    found = planned([x], multiply(first, half), multiply(second, half), add(first, half))
    assert [len(nest.stores) for nest in found.kernels] == [2, 1]


def test_few_reductions_of_other_arrays_join_a_nest():
    arrays = [array(4, 5) for _ in range(20)]
    sums = [total(multiply(x, x)) for x in arrays]
    first, *others, last = planned(arrays, reduce(add, sums)).kernels
    assert reductions(last) == 6
    assert len(others) == 13
    assert {reductions(nest) for nest in (first, *others)} == {1}


def test_a_part_that_is_written_over_stands_elsewhere_for_its_other_users():
    x = array(3, 4)
    y = exp(x)
    whole = ((0, 0), (1, 1))
    places = (whole, whole)
    seven = views.broadcast(constant(7.0, "float32"), (3, 4))
    over = apply(ASSEMBLE, (y, seven), y.type, places=places, filled=False)
    first, *_ = optimized_plan([x], over, y).kernels
    assert first.stores[0].operand.buffer != Buffer("call", 1)


def test_sums_that_are_compared_with_the_largest_of_them_are_computed_once():
    x = array(4, 5)
    sums = total(x, axis=1)
    scaled = multiply(sums, constant(2.0, "float32"))
    most = largest(scaled)
    assert compared_sums(Program((x,), (most,))) == set()
    reached = REGISTRY["equal"].operation(scaled, most)
    assert compared_sums(Program((x,), (reached,))) == {sums}
    assert compared_sums(Program((x,), (REGISTRY["equal"].operation(x, largest(x)),))) == set()


def _where_sums_are_largest(x):
    sums = total(x, axis=1)
    reached = REGISTRY["equal"].operation(sums, largest(sums))
    repeated = views.broadcast(views.reshape(reached, (4, 1)), (4, 5))
    return REGISTRY["where"].operation(repeated, exp(x), x)


def test_a_nest_reads_sums_that_another_kernel_needed_while_it_was_made():
    """In two nests they would be rounded in two orders, and none be the largest."""
    x = array(4, 5)
    found = optimized_plan([x], _where_sums_are_largest(x))
    assert [reductions(nest) for nest in found.kernels] == [1, 1, 0]


def test_a_check_finds_compared_sums_that_two_nests_compute(monkeypatch):
    x = array(4, 5)
    monkeypatch.setattr(settings, "check", True)
    monkeypatch.setattr(Loops, "are_overtaken", lambda self: False)
    with pytest.raises(ScheduleError, match=r"2 nests compute the sum of \(4, 5\) over \(1,\)"):
        optimized_plan([x], _where_sums_are_largest(x))


def test_a_nest_that_is_cut_computes_compared_sums_once(monkeypatch):
    """A nest goes over its data a few times at most: where it is cut, both parts need the sums."""
    x = array(4, 5)
    value = REGISTRY["hypot"].operation(x, _in_columns(total(multiply(x, x), axis=0)))
    reached = REGISTRY["equal"].operation(value, _in_columns(largest(value, axis=0)))
    value = multiply(x, reached)
    for _ in range(3):
        value = subtract(value, _in_columns(total(value, axis=0)))
    value = multiply(value, reached)
    (compared,) = compared_sums(Program((x,), (value,)))
    assert compared in kept_values(Program((x,), (value,)))
    monkeypatch.setattr(settings, "check", True)
    assert [reductions(nest) for nest in optimized_plan([x], value).kernels] == [4, 2]


def test_where_steps_are_too_many_for_one_nest_compared_sums_are_computed_once(monkeypatch):
    x = array(4, 5)
    sums = value = total(x, axis=1)
    for _ in range(6):
        value = exp(value)
    reached = REGISTRY["equal"].operation(add(sums, sums), largest(value))
    monkeypatch.setattr(settings, "check", True)
    assert [reductions(nest) for nest in optimized_plan([x], reached).kernels] == [1, 1]
    monkeypatch.setattr(inlining, "_MOST_NESTED", 5)
    assert [reductions(nest) for nest in optimized_plan([x], reached).kernels] == [1, 0, 1]


def test_chains_of_extremes_are_scheduled_in_time_that_grows_with_their_length():
    def calls(count):
        x, value = _repeated_part("softmax", count)
        profile = cProfile.Profile()
        profile.runcall(kept_values, Program((x,), (value,)))
        return sum(entry.callcount for entry in profile.getstats())

    assert calls(40) < 3 * calls(20)


def _in_columns(row):
    return views.broadcast(views.reshape(row, (1, 5)), (4, 5))


def _repeated_part(name, count):
    value = x = array(8, 16)
    for _ in range(count):
        value = REGISTRY[name].operation(value)
    return x, value


@pytest.mark.parametrize("name, count", [("softmax", 60), ("tanh", 400)])
def test_many_equal_parts_make_few_kinds_of_nests(name, count):
    """Every kind is compiled once: what a program repeats costs no more than its first parts."""
    x, value = _repeated_part(name, count)
    found = optimized_plan([x], value)
    assert len(function_for_known_sizes(found).units) <= 3 < len(found.kernels)


def test_a_nest_goes_over_its_data_a_few_times_at_most():
    """Every pass computes again what those before it had: sixty in one took its square in time."""
    x, value = _repeated_part("softmax", 60)
    found = optimized_plan([x], value)
    assert [reductions(nest) for nest in found.kernels] == [4] * 30
