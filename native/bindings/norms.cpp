#include "../core/norms.hpp"

#include "arrays.hpp"
#include "parts.hpp"

namespace fdrsvm::edge {

void bind_norms(nb::module_& module) {
    nb::module_ norms = module.def_submodule("norms", "Dual norms of weight vectors.");
    norms.def(
        "dual_norm",
        [](nb::handle w, int norm) {
            return dual_norm(HeldVector<>(w, "w").view(), check_norm(norm));
        },
        "w"_a, "norm"_a);
}

}  // namespace fdrsvm::edge
