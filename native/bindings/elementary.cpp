#include "../core/elementary.hpp"

#include "arrays.hpp"
#include "parts.hpp"

namespace fdrsvm::edge {

namespace {

template <class Function>
nb::object of_each(nb::handle x, Function function) {
    const HeldVector<> held(x, "x");
    NewVector out(held.size());
    {
        nb::gil_scoped_release unlocked;
        const ConstVector from = held.view();
        const Vector to = out.view();
        for (size_t i = 0; i < from.size(); ++i) to[i] = function(from[i]);
    }
    return out.object;
}

}  // namespace

void bind_elementary(nb::module_& module) {
    nb::module_ bound =
        module.def_submodule("elementary", "Functions whose bits do not depend on the processor.");
    bound.def("exp", [](nb::handle x) { return of_each(x, elementary::exp); }, "x"_a);
    bound.def("log", [](nb::handle x) { return of_each(x, elementary::log); }, "x"_a);
    bound.def("tanh", [](nb::handle x) { return of_each(x, elementary::tanh); }, "x"_a);
    bound.def(
        "sin",
        [](nb::handle x) {
            return of_each(x, [](double value) { return elementary::sine_cosine(value).sine; });
        },
        "x"_a);
    bound.def(
        "cos",
        [](nb::handle x) {
            return of_each(x, [](double value) { return elementary::sine_cosine(value).cosine; });
        },
        "x"_a);
    bound.def(
        "power",
        [](nb::handle x, double exponent) {
            return of_each(x, [=](double value) { return elementary::power(value, exponent); });
        },
        "x"_a, "exponent"_a);
}

}  // namespace fdrsvm::edge
