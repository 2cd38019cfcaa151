#pragma once

#include <string>

namespace hearth::pool::gpu {

/// A library of the machine's GPU driver, loaded at run time, since most machines have none. It
/// stays loaded to the end of the process, because its threads may be in it. Move-only.
class SharedLibrary {
public:
    /// `name`: a path, or a name that the loader looks up. `what` and `install` are for the error.
    /// Throws std::runtime_error that names the file, the reason and what to install.
    SharedLibrary(std::string name, const std::string& what, const std::string& install);
    SharedLibrary(const SharedLibrary&) = delete;
    SharedLibrary& operator=(const SharedLibrary&) = delete;

    /// Sets `function` to the first of these names that the library has. Throws std::runtime_error.
    template <typename Function, typename... Names>
    void need(Function& function, const char* name, Names... others) const {
        find(function, name, others...);
        if (function == nullptr) refuse(name);
    }
    /// The same, but null if the library has none of them.
    template <typename Function, typename... Names>
    void find(Function& function, Names... names) const {
        function = nullptr;
        for (const char* name : {names...}) {
            if (function == nullptr) function = reinterpret_cast<Function>(symbol(name));
        }
    }

private:
    void* symbol(const char* name) const noexcept;
    [[noreturn]] void refuse(const char* name) const;

    std::string name_;
    std::string what_;
    void* handle_;
};

}  // namespace hearth::pool::gpu
