#include "../core/norms.hpp"

#include "arrays.hpp"
#include "parts.hpp"

namespace fdrsvm::edge {

void bind_norms(nb::module_& module) {
    nb::module_ norms = module.def_submodule("norms", "Transport norms, and their duals.");
    norms.def(
        "dual_norm",
        [](nb::handle w, int norm, nb::handle groups) {
            const HeldVector<> held(w, "w");
            return dual_norm(held.view(), HeldTransport(norm, groups, held.size()).view());
        },
        "w"_a, "norm"_a, "groups"_a.none() = nb::none());
    norms.def(
        "transport_norm",
        [](nb::handle x, int norm, nb::handle groups) {
            const HeldVector<> held(x, "x");
            return transport_norm(held.view(), HeldTransport(norm, groups, held.size()).view());
        },
        "x"_a, "norm"_a, "groups"_a.none() = nb::none());
    norms.def(
        "dual_norm_subgradient",
        [](nb::handle w, int norm, nb::handle groups) {
            const HeldVector<> held(w, "w");
            NewVector out(held.size());
            std::fill_n(out.view().data(), held.size(), 0.0);
            add_dual_norm_subgradient(held.view(),
                                      HeldTransport(norm, groups, held.size()).view(), 1.0,
                                      out.view());
            return out.object;
        },
        "w"_a, "norm"_a, "groups"_a.none() = nb::none());
}

}  // namespace fdrsvm::edge
