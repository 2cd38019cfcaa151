#include "controller/egress/transport/Curl.h"

#include <new>

namespace hearth::egress {

void initialiseCurl() {
    static const CURLcode done = ::curl_global_init(CURL_GLOBAL_DEFAULT);
    if (done != CURLE_OK) throw std::runtime_error("libcurl cannot be initialised");
}

CurlHandle::CurlHandle() {
    initialiseCurl();
    curl_ = ::curl_easy_init();
    if (curl_ == nullptr) throw std::bad_alloc();
}

std::string_view headLine(const char* bytes, std::size_t size) noexcept {
    std::string_view line(bytes, size);
    while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
    return line;
}

void CurlList::add(const std::string& line) {
    curl_slist* const longer = ::curl_slist_append(list_.get(), line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    // libcurl returned the same list, extended.
    static_cast<void>(list_.release());
    list_.reset(longer);
}

}  // namespace hearth::egress
