// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Seeded mutation of a corpus: the same seed gives the same inputs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace smc::fuzz {

inline std::vector<std::string> read_corpus(const std::string& directory)
{
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(directory))
        paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    std::vector<std::string> corpus;
    for (const auto& path : paths) {
        std::ifstream file(path, std::ios::binary);
        corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return corpus;
}

class Mutator {
public:
    Mutator(std::vector<std::string> corpus, std::uint64_t seed)
        : corpus_(std::move(corpus)), random_(seed)
    {}

    std::string next()
    {
        std::string text = corpus_[below(corpus_.size())];
        for (std::size_t i = below(5); i > 0; --i)
            mutate(text);
        return text;
    }
    // In [0, bound); 0 for bound 0.
    std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }

private:
    void mutate(std::string& text)
    {
        static const std::vector<std::string> tokens = {"{",
                                                        "}",
                                                        "[",
                                                        "]",
                                                        "\"",
                                                        "\\",
                                                        ":",
                                                        ",",
                                                        "null",
                                                        "true",
                                                        "-1",
                                                        "0",
                                                        "1e999",
                                                        "\\u0000",
                                                        "18446744073709551615",
                                                        "18446744073709551616",
                                                        "-9223372036854775808",
                                                        "\xff",
                                                        "\x80",
                                                        "../",
                                                        "/",
                                                        "ffffffffffffffff",
                                                        "0000000000000000",
                                                        std::string(300, 'A'),
                                                        std::string(20, '['),
                                                        std::string(1, '\0'),
                                                        "[[",
                                                        "]]",
                                                        "=",
                                                        "#",
                                                        "\n",
                                                        "\"\"\"",
                                                        "."};
        const std::size_t at = below(text.size() + 1);
        const std::size_t length = std::min(below(16) + 1, text.size() - at);
        switch (below(7)) {
        case 0: // flip a bit
            if (at < text.size())
                text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
            break;
        case 1:
            text.erase(at, length);
            break;
        case 2:
            text.insert(at, text.substr(at, length));
            break;
        case 3:
            text.insert(at, tokens[below(tokens.size())]);
            break;
        case 4:
            text.replace(at, length, tokens[below(tokens.size())]);
            break;
        case 5: { // the tail of another
            const auto& other = corpus_[below(corpus_.size())];
            text = text.substr(0, at) + other.substr(below(other.size() + 1));
            break;
        }
        default:
            text.resize(at);
        }
    }

    std::vector<std::string> corpus_;
    std::mt19937_64 random_;
};

} // namespace smc::fuzz
