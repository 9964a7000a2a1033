// What Python tells of plans for ranges of sizes. Tables come from the cache on disk, too: what does
// not fit together is refused here.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "function_handle.h"
#include "kinds.h"
#include "plan_handle.h"
#include "sized_plans.h"

namespace nb = nanobind;

namespace heterosis::python {

namespace {

using Words = std::vector<int64_t>;
using ResultRow = std::tuple<std::string, Words, int, Words, int64_t>;
using FailureRow = std::tuple<std::string, std::vector<std::string>, Words>;
// The fields of `make_plan`, with words in place of numbers.
using TemplateRow = std::tuple<std::string, nb::object, Words, int64_t, int64_t, bool,
                               std::vector<ResultRow>, std::vector<FailureRow>, bool,
                               std::vector<int>>;

std::vector<Word> to_words(const Words& bits) { return {bits.begin(), bits.end()}; }

Ref<const PlanTemplate> to_template(nb::handle given, size_t slots) {
  const auto [operation, function, integers, workspace, nanoseconds, elementwise, results, failures,
              in_place, over] = nb::cast<TemplateRow>(given);
  auto* const made = new PlanTemplate;
  const Ref<const PlanTemplate> owned(made);
  made->operation = operation;
  if (!function.is_none()) {
    const auto& code = nb::cast<const FunctionHandle&>(function);
    made->function = code.function;
    made->code = code.object;
  }
  made->integers = to_words(integers);
  made->workspace = Word(workspace);
  made->nanoseconds = Word(nanoseconds);
  made->elementwise = elementwise;
  made->in_place = in_place;
  made->over = over;
  for (const auto& [dtype, shape, view_of, strides, offset] : results) {
    made->results.push_back(
        {dtype_named(dtype), to_words(shape), view_of, to_words(strides), Word(offset)});
  }
  for (const auto& [kind, texts, numbers] : failures) {
    made->failures.push_back({kind_named(kind), texts, to_words(numbers)});
  }
  if (!made->is_among(slots)) throw std::invalid_argument("a plan has numbers of unknown formulas");
  return owned;
}

void add(SizedPlans& plans, size_t sizes, const Words& table, size_t conditions, nb::handle plan,
         nb::handle preparation, nb::handle prepared, std::vector<size_t> ahead,
         std::vector<size_t> own) {
  PlanRange range{Formulas(sizes, table), conditions, {}, {}, {}, std::move(ahead), std::move(own)};
  const size_t slots = range.formulas.slots();
  if (conditions > range.formulas.rows()) throw std::invalid_argument("conditions without rows");
  range.plan = to_template(plan, slots);
  if (!preparation.is_none()) range.preparation = to_template(preparation, slots);
  if (!prepared.is_none()) range.prepared = nb::cast<std::shared_ptr<Prepared>>(prepared);
  plans.add(std::move(range));
}

nb::tuple at(const SizedPlans& plans, const Words& sizes) {
  SizedPlans::Found found;
  try {
    found = plans.at(sizes);
  } catch (const PythonError&) {
    throw nb::python_error();
  }
  nb::object plan = found.plan.plan ? nb::cast(std::move(found.plan)) : nb::none();
  return nb::make_tuple(plan, found.range);
}

// The results of all rows; None if something is required that does not hold, or a number is too
// large.
nb::object evaluated(const Words& sizes, const Words& table) {
  const Formulas formulas(sizes.size(), table);
  Words slots(sizes);
  slots.resize(formulas.slots());
  if (!formulas.evaluate(0, formulas.rows(), slots.data())) return nb::none();
  return nb::cast(Words(slots.begin() + static_cast<ptrdiff_t>(sizes.size()), slots.end()));
}

}  // namespace

void bind_sized_plans(nb::module_& m) {
  nb::class_<Prepared>(m, "Prepared").def(nb::init<>());
  nb::class_<SizedPlans>(m, "SizedPlans")
      .def("__init__",
           [](SizedPlans* self, size_t most, nb::handle prove) {
             new (self) SizedPlans(most, prove.is_none() ? Object() : Object::borrowed(prove.ptr()));
           },
           nb::arg("most"), nb::arg("prove").none())
      .def("add", add, nb::arg("sizes"), nb::arg("table"), nb::arg("conditions"), nb::arg("plan"),
           nb::arg("preparation").none(), nb::arg("prepared").none(), nb::arg("ahead"),
           nb::arg("own"))
      .def("at", at);
  m.def("evaluated", evaluated);
}

}  // namespace heterosis::python
