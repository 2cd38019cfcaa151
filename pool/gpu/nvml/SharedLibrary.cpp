#include "pool/gpu/nvml/SharedLibrary.h"

#include <dlfcn.h>

#include <stdexcept>

namespace hearth::pool::gpu {

SharedLibrary::SharedLibrary(std::string name, const std::string& what, const std::string& install)
    : name_(std::move(name)), what_(what), handle_(::dlopen(name_.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ != nullptr) return;
    const char* reason = ::dlerror();
    throw std::runtime_error(what + " was looked for as " + name_ + " and cannot be loaded (" +
                             (reason == nullptr ? "no reason given" : reason) + "); " + install);
}

void* SharedLibrary::symbol(const char* name) const noexcept {
    return ::dlsym(handle_, name);
}

void SharedLibrary::refuse(const char* name) const {
    throw std::runtime_error(name_ + " has no function " + name + ": it is not " + what_ +
                             ", or that of a driver before release 470");
}

}  // namespace hearth::pool::gpu
