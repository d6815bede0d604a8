// One function per part of the module; each binds the kernels of one folder as a submodule.
#pragma once

#include <nanobind/nanobind.h>

namespace fdrsvm::edge {

void bind_client(nanobind::module_& module);
void bind_elementary(nanobind::module_& module);
void bind_master(nanobind::module_& module);
void bind_norms(nanobind::module_& module);
void bind_products(nanobind::module_& module);
void bind_risk(nanobind::module_& module);
void bind_screening(nanobind::module_& module);
void bind_steps(nanobind::module_& module);
void bind_pump(nanobind::module_& module);

inline void bind_all(nanobind::module_& module) {
    bind_client(module);
    bind_elementary(module);
    bind_master(module);
    bind_norms(module);
    bind_products(module);
    bind_risk(module);
    bind_screening(module);
    bind_steps(module);
    bind_pump(module);
}

}  // namespace fdrsvm::edge
