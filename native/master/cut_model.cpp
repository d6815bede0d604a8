#include "cut_model.hpp"

#include "../core/products.hpp"

namespace fdrsvm::master {

double total_floor(const CutModel& model) {
    return dot(model.alphas.data(), model.floors.data(), model.n_clients());
}

void cut_values(const CutModel& model, ConstVector w, Vector out) {
    const double size = dual_size(model, w);
    times(model.slopes, w, out);
    for (size_t k = 0; k < model.n_cuts(); ++k)
        out[k] = model.constants[k] + out[k] + model.norm_weights[k] * size;
}

void client_values(const CutModel& model, ConstVector w, Vector out) {
    const double size = dual_size(model, w);
    Buffer<> values(model.n_cuts());
    cut_values(model, w, values);
    // The floor is one of the cuts, so a client without cuts still has a value.
    for (size_t g = 0; g < model.n_clients(); ++g) out[g] = model.floors[g] * size;
    for (size_t k = 0; k < model.n_cuts(); ++k) {
        double& largest = out[model.owners[k]];
        const bool is_nan = values[k] != values[k];  // a nan stays: it must not look like a value
        if (values[k] > largest || is_nan) largest = values[k];
    }
}

double model_value(const CutModel& model, ConstVector w) {
    Buffer<> values(model.n_clients());
    client_values(model, w, values);
    return dot(model.alphas.data(), values.data(), values.size());
}

}  // namespace fdrsvm::master
