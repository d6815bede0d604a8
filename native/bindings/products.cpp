#include "../core/choices.hpp"
#include "../core/linear_algebra.hpp"
#include "../core/products.hpp"

#include <cmath>

#include "arrays.hpp"
#include "parts.hpp"

namespace fdrsvm::edge {

namespace {

// Rows of a Gram matrix that are weighted and padded at a time.
constexpr size_t kGramRows = 64;

// Sets out's upper half to sum_n weights_n x_n x_n', and its lower half to the same.
void set_gram(ConstMatrix rows, ConstVector weights, Matrix out) {
    const size_t width = rows.columns, stride = padded(width);
    Buffer<> block(kGramRows * stride, 0.0), sums(width * stride, 0.0);
    const Matrix total{sums.data(), width, width, stride};
    for (size_t first = 0; first < rows.rows; first += kGramRows) {
        const size_t count = std::min(kGramRows, rows.rows - first);
        for (size_t n = 0; n < count; ++n) {
            const double root = std::sqrt(weights[first + n]);
            const double* row = rows[first + n].data();
            for (size_t j = 0; j < width; ++j) block[n * stride + j] = root * row[j];
        }
        add_gram({block.data(), count, width, stride}, total);
    }
    for (size_t i = 0; i < width; ++i)
        for (size_t j = i; j < width; ++j) out[i][j] = out[j][i] = total[i][j];
}

}  // namespace

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
    products.def(
        "gram",
        [](nb::handle rows, nb::handle weights) {
            const HeldMatrix<> held_rows(rows, "rows");
            const HeldVector<> held_weights(weights, "weights", held_rows.shape(0));
            NewMatrix out(held_rows.shape(1), held_rows.shape(1));
            {
                nb::gil_scoped_release unlocked;
                set_gram(held_rows.view(), held_weights.view(), out.view());
            }
            return out.object;
        },
        "rows"_a, "weights"_a);
}

}  // namespace fdrsvm::edge
