#pragma once

#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace hearth::agent::program {

/// Archives for tests: correct in form, with any content.
class TarMaker {
public:
    TarMaker& file(const std::string& name, const std::string& content, unsigned mode = 0644,
                   long time = 0) {
        header(name, '0', content.size(), "", mode, time);
        return body(content);
    }
    TarMaker& directory(const std::string& name, unsigned mode = 0755) {
        return header(name, '5', 0, "", mode);
    }
    TarMaker& symlink(const std::string& name, const std::string& target) {
        return header(name, '2', 0, target);
    }
    TarMaker& hardlink(const std::string& name, const std::string& target) {
        return header(name, '1', 0, target);
    }
    TarMaker& raw(const std::string& name, char type) { return header(name, type, 0, ""); }
    TarMaker& gnuLong(const std::string& name, const std::string& content) {
        header("././@LongLink", 'L', name.size() + 1, "");
        body(name + '\0');
        return file(name.substr(0, 90), content);
    }
    TarMaker& pax(const std::vector<std::pair<std::string, std::string>>& records,
                  const std::string& name, const std::string& content) {
        std::string text;
        for (const auto& [key, value] : records) {
            const std::string rest = " " + key + "=" + value + "\n";
            std::size_t length = rest.size() + 1;
            while (std::to_string(length).size() + rest.size() != length) ++length;
            text += std::to_string(length) + rest;
        }
        header("pax", 'x', text.size(), "");
        body(text);
        return file(name, content);
    }
    /// Adds a file whose size field holds these bytes.
    TarMaker& sized(const std::string& name, const std::string& field) {
        header(name, '0', 0, "");
        char* block = out_.data() + out_.size() - 512;
        std::memset(block + 124, 0, 12);
        std::memcpy(block + 124, field.data(), std::min<std::size_t>(field.size(), 12));
        sum(block);
        return *this;
    }
    std::string done() const { return out_ + std::string(1'024, '\0'); }

    /// Makes every header's checksum fit again, as far as headers can still be found.
    static void repair(std::string& tar) {
        for (std::size_t at = 0; at + 512 <= tar.size(); at += 512) {
            if (tar.compare(at + 257, 5, "ustar") == 0) sum(tar.data() + at);
        }
    }

private:
    TarMaker& header(const std::string& name, char type, std::size_t size,
                     const std::string& target, unsigned mode = 0644, long time = 0) {
        std::string block(512, '\0');
        block.replace(0, std::min<std::size_t>(name.size(), 100), name.substr(0, 100));
        const auto number = [&](std::size_t at, int digits, unsigned long value) {
            char text[32];
            std::snprintf(text, sizeof text, "%0*lo", digits, value);
            block.replace(at, static_cast<std::size_t>(digits), text);
        };
        number(100, 7, mode);
        number(108, 7, 0);
        number(116, 7, 0);
        number(124, 11, size);
        number(136, 11, static_cast<unsigned long>(time));
        block[156] = type;
        block.replace(157, std::min<std::size_t>(target.size(), 100), target.substr(0, 100));
        block.replace(257, 8,
                      std::string("ustar\0"
                                  "00",
                                  8));
        sum(block.data());
        out_ += block;
        return *this;
    }
    TarMaker& body(const std::string& content) {
        out_ += content;
        out_.append((512 - content.size() % 512) % 512, '\0');
        return *this;
    }
    static void sum(char* block) {
        std::memset(block + 148, ' ', 8);
        unsigned total = 0;
        for (int i = 0; i < 512; ++i) total += static_cast<unsigned char>(block[i]);
        std::snprintf(block + 148, 8, "%06o", total);
    }

    std::string out_;
};

}  // namespace hearth::agent::program
