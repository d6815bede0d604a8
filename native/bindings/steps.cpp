#include <algorithm>
#include <vector>

#include "../steps/deal.hpp"
#include "../steps/runs.hpp"
#include "indices.hpp"
#include "parts.hpp"

namespace fdrsvm::edge {

using namespace steps;

namespace {

using HeldIndices = HeldVector<const std::int64_t>;
using HeldOffsets = HeldVector<const std::int32_t>;

[[noreturn]] void refuse_value(const char* rule) { throw nb::value_error(rule); }

// A client's rows with labels and masses.
struct HeldSamples {
    HeldMatrix<> X;
    HeldVector<> data;
    HeldOffsets indices, indptr;
    HeldVector<> y, mass;
    Samples samples;

    size_t n_rows() const { return y.size(); }
    size_t n_features() const { return samples.rows.n_features(); }
};

HeldSamples dense_samples(nb::handle X, nb::handle y, nb::handle mass) {
    HeldSamples held;
    held.X = HeldMatrix<>(X, "X");
    held.y = HeldVector<>(y, "y", held.X.shape(0));
    held.mass = HeldVector<>(mass, "mass", held.X.shape(0));
    held.samples = {{held.X.view(), {}}, held.y.view(), held.mass.view()};
    return held;
}

HeldSamples sparse_samples(nb::tuple csr, size_t n_features, nb::handle y, nb::handle mass) {
    if (csr.size() != 3) refuse_value("csr: must be data, indices and indptr");
    HeldSamples held;
    held.y = HeldVector<>(y, "y");
    held.mass = HeldVector<>(mass, "mass", held.y.size());
    held.data = HeldVector<>(csr[0], "data");
    held.indices = HeldOffsets(csr[1], "indices", held.data.size());
    held.indptr = HeldOffsets(csr[2], "indptr", held.y.size() + 1);
    const auto ends = held.indptr.view();
    if (ends.front() != 0 || static_cast<size_t>(ends.back()) > held.data.size() ||
        !std::is_sorted(ends.begin(), ends.end()))
        refuse_value("indptr: must rise from 0 to the number of entries at most");
    check_indices("indices", held.indices.view(), n_features);
    const Sparse sparse = {held.data.data(), held.indices.data(), held.indptr.data()};
    held.samples = {
        {{nullptr, 0, n_features, n_features}, sparse}, held.y.view(), held.mass.view()};
    return held;
}

struct HeldClients {
    HeldMatrix<> X;
    HeldVector<> y;
    HeldIndices first;

    HeldClients(nb::handle X, nb::handle y, nb::handle first)
        : X(X, "X"), y(y, "y", this->X.shape(0)), first(first, "first") {
        const auto ends = this->first.view();
        const bool is_covered = ends.size() > 1 && ends.front() == 0 &&
                                static_cast<size_t>(ends.back()) == this->y.size();
        if (!is_covered ||
            std::adjacent_find(ends.begin(), ends.end(), std::greater_equal<>()) != ends.end())
            refuse_value("first: must rise from 0 to the number of rows");
    }
    size_t count() const { return first.size() - 1; }
    Clients view() const { return {X.view(), y.view(), first.view()}; }
};

struct HeldDraws {
    HeldIndices batches, drawn, sizes;
    size_t n_rounds, n_local;
    std::vector<std::int64_t> largest;  // row number of each client

    HeldDraws(nb::handle batches, nb::handle drawn, nb::handle sizes, size_t n_rounds,
              size_t n_local)
        : batches(batches, "batches"),
          drawn(drawn, "drawn"),
          sizes(sizes, "sizes"),
          n_rounds(n_rounds),
          n_local(n_local) {
        check_size("drawn", this->drawn.size(), this->sizes.size() + 1);
        if (n_rounds == 0 || n_local == 0 || this->sizes.size() == 0)
            refuse_value("draws: must have a round, a step and a client");
        const auto numbers = this->batches.view(), ends = this->drawn.view();
        if (n_local > numbers.size() / n_rounds)
            refuse_value("draws: must have as many batches as rounds times steps");
        const auto per_client = static_cast<std::int64_t>(n_rounds * n_local);
        for (size_t g = 0; g < this->sizes.size(); ++g) {
            const char* rule = "drawn: must give every client whole batches in every round";
            if (ends[g] < 0 || ends[g + 1] < ends[g] ||
                static_cast<size_t>(ends[g + 1]) > numbers.size())
                refuse_value(rule);
            const std::int64_t size = this->sizes.view()[g], length = ends[g + 1] - ends[g];
            if (size < 1 || size > length / per_client || length % (per_client * size) != 0)
                refuse_value(rule);
            const auto own = numbers.subspan(static_cast<size_t>(ends[g]), length);
            const auto [least, most] = std::minmax_element(own.begin(), own.end());
            if (*least < 0) refuse_value("batches: must not be negative");
            largest.push_back(*most);
        }
    }
    Draws view() const { return {batches.view(), drawn.view(), sizes.view(), n_rounds, n_local}; }
};

void check_draws(const HeldClients& clients, const HeldDraws& draws) {
    check_size("sizes", draws.sizes.size(), clients.count());
    const auto first = clients.first.view();
    for (size_t g = 0; g < clients.count(); ++g)
        if (draws.largest[g] >= first[g + 1] - first[g])
            refuse_value("batches: must number the rows of their client");
}

// What a step of FedDRO needs besides the samples.
struct TiltedStart {
    Tilt tilt;
    double log_moment;
    size_t first_step;
};

void check_model(const HeldSamples& samples, size_t width) {
    if (width != samples.n_features() && width != samples.n_features() + 1)
        refuse_value("start: must have one entry per feature, and one for an intercept");
}

nb::object local_epochs_edge(const HeldSamples& samples, nb::handle start, nb::handle order,
                             size_t batch_size, const Descent& descent) {
    const HeldVector<> centre(start, "start");
    check_model(samples, centre.size());
    const HeldMatrix<const std::int64_t> held(order, "order", descent.n_epochs);
    check_indices("order", Indices(held.data(), held.size()), samples.n_rows());
    if (batch_size == 0 || held.shape(1) == 0 || held.shape(1) % batch_size != 0)
        refuse_value("order: must have whole batches");
    const NewVector out(centre.size());
    {
        nb::gil_scoped_release unlocked;
        Scratch scratch(centre.size(), batch_size);
        const Batches batches = {held.data(), held.size() / batch_size, batch_size};
        local_epochs(samples.samples, batches, descent, centre.view(), out.view(), scratch);
    }
    return out.object;
}

nb::tuple tilted_steps_edge(const HeldSamples& samples, nb::handle start, nb::handle batches,
                            nb::handle momentums, const TiltedStart& settings) {
    const HeldVector<> given(start, "start");
    check_model(samples, given.size());
    const HeldMatrix<const std::int64_t> held(batches, "batches");
    check_indices("batches", Indices(held.data(), held.size()), samples.n_rows());
    if (held.size() == 0) refuse_value("batches: must not be empty");
    const HeldVector<> held_momentums(momentums, "momentums", held.shape(0));
    const NewVector out(given.size());
    TiltedState state = {out.view(), settings.log_moment, settings.first_step};
    {
        nb::gil_scoped_release unlocked;
        std::copy_n(given.data(), given.size(), state.model.data());
        Scratch scratch(given.size(), held.shape(1));
        const Batches all = {held.data(), held.shape(0), held.shape(1)};
        tilted_steps(samples.samples, all, settings.tilt, held_momentums.view(), state, scratch);
    }
    return nb::make_tuple(out.object, state.log_moment);
}

nb::object fedsgd_edge(const HeldClients& clients, nb::handle epsilons, double learning_rate,
                       size_t n_rounds) {
    const HeldVector<> radii(epsilons, "epsilons", clients.count());
    const NewMatrix models(n_rounds, clients.X.shape(1));
    {
        nb::gil_scoped_release unlocked;
        fedsgd_run(clients.view(), radii.view(), learning_rate, models.view());
    }
    return models.object;
}

nb::object fedprox_edge(const HeldClients& clients, const HeldDraws& draws, nb::handle epsilons,
                        double learning_rate, double prox_weight) {
    const HeldVector<> radii(epsilons, "epsilons", clients.count());
    check_draws(clients, draws);
    const NewMatrix models(draws.n_rounds, clients.X.shape(1));
    {
        nb::gil_scoped_release unlocked;
        const Descent descent = {0.0, learning_rate, prox_weight, draws.n_local};
        fedprox_run(clients.view(), draws.view(), radii.view(), descent, models.view());
    }
    return models.object;
}

nb::object feddro_edge(const HeldClients& clients, const HeldDraws& draws, nb::handle epsilons,
                       const TiltedRun& run) {
    const HeldVector<> radii(epsilons, "epsilons", clients.count());
    check_draws(clients, draws);
    const NewMatrix models(draws.n_rounds, clients.X.shape(1));
    {
        nb::gil_scoped_release unlocked;
        feddro_run(clients.view(), draws.view(), radii.view(), run, models.view());
    }
    return models.object;
}

nb::object feddro_published_edge(const HeldClients& clients, const HeldDraws& draws,
                                 const TiltedRun& run) {
    check_draws(clients, draws);
    const NewMatrix models(draws.n_rounds, clients.X.shape(1));
    {
        nb::gil_scoped_release unlocked;
        feddro_published_run(clients.view(), draws.view(), run, models.view());
    }
    return models.object;
}

nb::object deal_edge(nb::handle shares, size_t n_rows) {
    const HeldVector<> held(shares, "shares");
    if (held.size() == 0) refuse_value("shares: must be of at least one client");
    const NewIndices turns(n_rows);
    {
        nb::gil_scoped_release unlocked;
        deal(held.view(), turns.view());
    }
    return turns.object;
}

void bind_local(nb::module_& module) {
    nb::class_<HeldSamples>(module, "Samples")
        .def_static("dense", &dense_samples, "X"_a, "y"_a, "mass"_a)
        .def_static("sparse", &sparse_samples, "csr"_a, "n_features"_a, "y"_a, "mass"_a);
    nb::class_<Descent>(module, "Descent")
        .def(
            "__init__",
            [](Descent* self, double epsilon, double learning_rate, double prox_weight,
               size_t n_epochs) {
                new (self) Descent{epsilon, learning_rate, prox_weight, n_epochs};
            },
            nb::kw_only(), "epsilon"_a, "learning_rate"_a, "prox_weight"_a, "n_epochs"_a);
    nb::class_<TiltedStart>(module, "Tilt")
        .def(
            "__init__",
            [](TiltedStart* self, double epsilon, double learning_rate, double temperature,
               double least, double log_moment, size_t first_step) {
                if (first_step == 0) refuse_value("first_step: steps are numbered from 1");
                new (self) TiltedStart{
                    {epsilon, learning_rate, temperature, least}, log_moment, first_step};
            },
            nb::kw_only(), "epsilon"_a, "learning_rate"_a, "temperature"_a, "least"_a,
            "log_moment"_a, "first_step"_a);
    module.def("local_epochs", &local_epochs_edge, "samples"_a, "start"_a, "order"_a,
               "batch_size"_a, "descent"_a);
    module.def("tilted_steps", &tilted_steps_edge, "samples"_a, "start"_a, "batches"_a,
               "momentums"_a, "tilt"_a);
    module.def("log_mix", &log_mix, "log_a"_a, "log_b"_a, "share"_a);
}

void bind_runs(nb::module_& module) {
    nb::class_<HeldClients>(module, "Clients")
        .def(nb::init<nb::handle, nb::handle, nb::handle>(), "X"_a, "y"_a, "first"_a);
    nb::class_<HeldDraws>(module, "Draws")
        .def(nb::init<nb::handle, nb::handle, nb::handle, size_t, size_t>(), nb::kw_only(),
             "batches"_a, "drawn"_a, "sizes"_a, "n_rounds"_a, "n_local"_a)
        .def_prop_ro("batches", [](const HeldDraws& draws) { return draws.batches.object; })
        .def_prop_ro("drawn", [](const HeldDraws& draws) { return draws.drawn.object; })
        .def_prop_ro("sizes", [](const HeldDraws& draws) { return draws.sizes.object; });
    nb::class_<TiltedRun>(module, "TiltedRun")
        .def(
            "__init__",
            [](TiltedRun* self, double learning_rate, double temperature, double momentum) {
                new (self) TiltedRun{learning_rate, temperature, momentum};
            },
            nb::kw_only(), "learning_rate"_a, "temperature"_a, "momentum"_a);
    module.def("fedsgd_run", &fedsgd_edge, "clients"_a, "epsilons"_a, "learning_rate"_a,
               "n_rounds"_a);
    module.def("fedprox_run", &fedprox_edge, "clients"_a, "draws"_a, "epsilons"_a,
               "learning_rate"_a, "prox_weight"_a);
    module.def("feddro_run", &feddro_edge, "clients"_a, "draws"_a, "epsilons"_a, "run"_a);
    module.def("feddro_published_run", &feddro_published_edge, "clients"_a, "draws"_a, "run"_a);
}

}  // namespace

void bind_steps(nb::module_& module) {
    nb::module_ submodule = module.def_submodule(
        "steps", "Steps on mini-batches, whole runs of the baselines, and how rows are dealt.");
    bind_local(submodule);
    bind_runs(submodule);
    submodule.def("deal", &deal_edge, "shares"_a, "n_rows"_a);
}

}  // namespace fdrsvm::edge
