# SPDX-License-Identifier: Apache-2.0
"""A class of C++, std::regex, as a handle, through C functions in the description.

Its first run requires g++ or clang++. The compiled code is cached.
"""

import cuplug

SOURCE = """
#include <cstdint>
#include <cstring>
#include <regex>

extern "C" std::regex *make(const char *pattern) {
  try {
    return new std::regex(pattern);
  } catch (const std::exception &) {
    return nullptr;
  }
}

extern "C" void destroy(std::regex *pattern) { delete pattern; }

// The places of all matches: 0 is success.
extern "C" int find(const std::regex *pattern, const char *text, int64_t **made, int64_t *n) {
  try {
    const std::cregex_iterator begin(text, text + strlen(text), *pattern), end;
    *made = new int64_t[strlen(text) + 1];
    for (auto match = begin; match != end; ++match) (*made)[(*n)++] = match->position();
    return 0;
  } catch (const std::exception &) {
    return 1;
  }
}

extern "C" void destroy_places(int64_t *places) { delete[] places; }
"""

cplusplus = cuplug.adopt(
    "libstdc++.so.6",
    {
        "source": SOURCE,
        "prototypes": """
            struct regex;
            struct regex *make(const char *pattern);
            void destroy(struct regex *pattern);
            int find(const struct regex *pattern, const char *text, int64_t **made, int64_t *n);
            void destroy_places(int64_t *places);
        """,
        "regex": {
            "function": "make",
            "signature": "regex(pattern: str) -> handle[regex]",
            "arguments": "pattern",
            "returns": "regex",
            "destroy": "destroy",
        },
        "find": {
            "signature": "find(pattern: handle[regex], text: str) -> places: int64[?]",
            "arguments": "pattern, text, made, n",
            "scratch": "made: int64[*]; n: int64",
            "outputs": "places: made[n]",
            "free": "destroy_places",
        },
    },
)


def main() -> None:
    with cplusplus.regex("[0-9]+") as numbers:
        print("numbers begin at", cplusplus.find(numbers, "a 12, b 345, c 6").tolist())
    try:
        cplusplus.regex("[0-9")
    except cuplug.PluginError as error:
        print(error)


if __name__ == "__main__":
    main()
