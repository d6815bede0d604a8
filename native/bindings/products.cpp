#include "../core/products.hpp"

#include "arrays.hpp"
#include "parts.hpp"

namespace fdrsvm::edge {

void bind_products(nb::module_& module) {
    nb::module_ products =
        module.def_submodule("products", "A matrix times a vector, the same bits everywhere.");
    products.def(
        "dot",
        [](nb::handle x, nb::handle y) {
            const HeldVector<> held_x(x, "x");
            const HeldVector<> held_y(y, "y", held_x.size());
            return dot(held_x.data(), held_y.data(), held_x.size());
        },
        "x"_a, "y"_a);
    products.def(
        "times",
        [](nb::handle rows, nb::handle x) {
            const HeldMatrix<> held_rows(rows, "rows");
            const HeldVector<> held_x(x, "x", held_rows.shape(1));
            NewVector out(held_rows.shape(0));
            {
                nb::gil_scoped_release unlocked;
                times(held_rows.view(), held_x.view(), out.view());
            }
            return out.object;
        },
        "rows"_a, "x"_a);
    products.def(
        "transposed_times",
        [](nb::handle rows, nb::handle x) {
            const HeldMatrix<> held_rows(rows, "rows");
            const HeldVector<> held_x(x, "x", held_rows.shape(0));
            NewVector out(held_rows.shape(1));
            {
                nb::gil_scoped_release unlocked;
                transposed_times(held_rows.view(), held_x.view(), out.view());
            }
            return out.object;
        },
        "rows"_a, "x"_a);
}

}  // namespace fdrsvm::edge
