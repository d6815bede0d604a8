// One module per instruction set; only the best one that the processor has is ever loaded.
#include "parts.hpp"

NB_MODULE(FDRSVM_MODULE, module) {
    module.doc() = "Compiled kernels; see native/README.md.";
    fdrsvm::edge::bind_all(module);
}
