// The form that an answer's arrays must have, looked at before anything reads them.
#pragma once

#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "arrays.hpp"

namespace fdrsvm::edge {

// A Python object's memory as an array of numbers of any kind. Python's buffers cost less than
// nb::ndarray does, and a round has several per client.
class AnyBuffer {
  public:
    explicit AnyBuffer(nb::handle given) {
        if (PyObject_GetBuffer(given.ptr(), &buffer_, PyBUF_STRIDED_RO | PyBUF_FORMAT) == 0) return;
        PyErr_Clear();
        buffer_.obj = nullptr;
    }
    AnyBuffer(AnyBuffer&& other) noexcept : buffer_(other.buffer_) { other.buffer_.obj = nullptr; }
    AnyBuffer& operator=(AnyBuffer&&) = delete;
    ~AnyBuffer() { PyBuffer_Release(&buffer_); }  // does nothing without an object

    bool is_float64() const {
        if (buffer_.obj == nullptr || buffer_.format == nullptr) return false;
        const std::string_view format = buffer_.format;
        return format == "d" || format == "=d";  // the second where it is not aligned
    }
    bool is_plain() const {
        return PyBuffer_IsContiguous(&buffer_, 'C') &&
               reinterpret_cast<std::uintptr_t>(buffer_.buf) % alignof(double) == 0;
    }
    size_t n_dimensions() const { return static_cast<size_t>(buffer_.ndim); }
    size_t shape(size_t axis) const { return static_cast<size_t>(buffer_.shape[axis]); }

    // Calls `visit` with every number, in C order, until it says false; whether it never did.
    template <class Visit>
    bool all_of(Visit visit) const {
        return all_from(static_cast<const char*>(buffer_.buf), 0, visit);
    }

  private:
    Py_buffer buffer_;

    template <class Visit>
    bool all_from(const char* from, int axis, Visit& visit) const {
        if (axis == buffer_.ndim) {
            double value;
            std::memcpy(&value, from, sizeof value);
            return visit(value);
        }
        for (Py_ssize_t i = 0; i < buffer_.shape[axis]; ++i)
            if (!all_from(from + i * buffer_.strides[axis], axis + 1, visit)) return false;
        return true;
    }
};

// Names and shapes of an answer's arrays, and what their numbers must be.
class Form {
  public:
    // In `shapes` None is any length. The arrays of one of `together` have as many rows as each
    // other; those in `never_negative` have no negative number.
    Form(const nb::dict& shapes, const nb::list& together, const nb::list& never_negative)
        : array_type_(nb::module_::import_("numpy").attr("ndarray")) {
        for (auto [name, shape] : shapes) {
            if (!nb::isinstance<nb::str>(name) || !nb::isinstance<nb::tuple>(shape))
                refuse("shapes", "tuples by name");
            const bool is_never_negative =
                PySequence_Contains(never_negative.ptr(), name.ptr()) == 1;
            parts_.push_back(
                {nb::borrow(name), sizes_of(nb::borrow<nb::tuple>(shape)), is_never_negative});
        }
        for (nb::handle names : together) {
            if (!nb::isinstance<nb::tuple>(names)) refuse("together", "tuples of names");
            together_.emplace_back();
            for (nb::handle name : nb::borrow<nb::tuple>(names))
                together_.back().push_back(index_of(name));
        }
    }

    // The rule that is broken and the name of the array that breaks it, or None. Rules in order:
    // "names", "dtype", "shape", "finite", "cuts", "negative".
    nb::object fault(const nb::dict& values) const {
        if (values.size() != parts_.size()) return broken("names", nullptr);
        for (const Part& part : parts_)
            if (!values.contains(part.name)) return broken("names", nullptr);
        std::vector<size_t> lengths;
        for (const Part& part : parts_) {
            const nb::object given = values[part.name];
            // A subclass may do anything when it is read, and kernels do not read strided arrays.
            if (!given.type().is(array_type_)) return broken("dtype", &part);
            const AnyBuffer array(given);
            if (!array.is_float64() || !array.is_plain()) return broken("dtype", &part);
            if (!fits(array, part.shape)) return broken("shape", &part);
            if (!array.all_of([](double value) { return std::isfinite(value); }))
                return broken("finite", &part);
            lengths.push_back(part.shape.empty() ? 1 : array.shape(0));
        }
        return fault_of_numbers(values, lengths);
    }

  private:
    static constexpr size_t kAnyLength = static_cast<size_t>(-1);
    struct Part {
        nb::object name;
        std::vector<size_t> shape;
        bool is_never_negative;
    };

    nb::object array_type_;
    std::vector<Part> parts_;
    std::vector<std::vector<size_t>> together_;

    static std::vector<size_t> sizes_of(const nb::tuple& shape) {
        std::vector<size_t> sizes;
        for (nb::handle length : shape) {
            size_t size = kAnyLength;
            if (!length.is_none() && !nb::try_cast(length, size))
                refuse("shapes", "whole numbers, or None for any length");
            sizes.push_back(size);
        }
        return sizes;
    }
    size_t index_of(nb::handle name) const {
        for (size_t k = 0; k < parts_.size(); ++k)
            if (parts_[k].name.equal(name)) return k;
        throw nb::value_error("together: must be names of shapes");
    }
    static bool fits(const AnyBuffer& array, const std::vector<size_t>& shape) {
        if (array.n_dimensions() != shape.size()) return false;
        for (size_t axis = 0; axis < shape.size(); ++axis)
            if (shape[axis] != kAnyLength && shape[axis] != array.shape(axis)) return false;
        return true;
    }
    nb::object fault_of_numbers(const nb::dict& values, const std::vector<size_t>& lengths) const {
        for (const std::vector<size_t>& group : together_)
            for (size_t k : group)
                if (lengths[k] != lengths[group[0]]) return broken("cuts", &parts_[k]);
        for (const Part& part : parts_) {
            if (!part.is_never_negative) continue;
            const AnyBuffer array(values[part.name]);
            if (!array.all_of([](double value) { return !(value < 0.0); }))
                return broken("negative", &part);
        }
        return nb::none();
    }
    static nb::object broken(const char* rule, const Part* part) {
        return nb::make_tuple(rule, part == nullptr ? nb::none() : part->name);
    }
};

}  // namespace fdrsvm::edge
