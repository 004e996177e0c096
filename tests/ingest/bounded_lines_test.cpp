#include "ingest/bounded_lines.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>
#include <vector>

#include "support/temp_dir.h"

namespace watchdog::monitor {
namespace {

class BoundedLinesTest : public testing::Test {
 protected:
  BoundedLines lines_of(std::string_view text) {
    std::ofstream(file_, std::ios::binary) << text;
    auto lines = BoundedLines::open(file_);
    EXPECT_TRUE(lines.ok());
    return std::move(*lines);
  }

  test::TempDir folder_;
  std::filesystem::path file_ = folder_.path() / "lines";
};

using Numbered = std::vector<std::pair<int, std::string>>;

/// The lines that are not blank, as the standard library reads them.
Numbered expected_lines(const std::string& text) {
  Numbered lines;
  std::istringstream stream(text);
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string::npos) lines.emplace_back(number, line);
  }
  return lines;
}

TEST_F(BoundedLinesTest, are_those_that_are_not_blank) {
  // The reader takes parts of 65535 bytes.
  const std::string part(65'535, 'x');
  std::vector<std::string> texts{
      "",   "\n", "a", "a\n", "\n\na\n\n", "a\r\n \t\r\nb", "a\n\n", std::string("a\0b\nc", 5),
      " \n"};
  for (const auto& extra : {"", "y", "yy"}) {
    texts.push_back(part + extra);
    texts.push_back(part + extra + "\nb\n");
    texts.push_back(part + part + extra + "\n\nb");
    texts.push_back(part.substr(1) + extra + "\nb");
  }
  std::mt19937 random(17);
  for (int i = 0; i < 200; ++i) {
    std::string text;
    for (int piece = 0; piece < 8; ++piece)
      text +=
          std::string(random() % 3 == 0 ? random() % 70'000 : random() % 3, "ab \r"[random() % 4]) +
          (random() % 2 == 0 ? "\n" : "");
    texts.push_back(std::move(text));
  }
  for (std::size_t at = 0; at < texts.size(); ++at) {
    auto lines = lines_of(texts[at]);
    Numbered found;
    std::string line;
    while (true) {
      const auto next = lines.next(line, 1'000'000);
      ASSERT_TRUE(next.ok()) << "text " << at << " of seed 17";
      if (!*next) break;
      found.emplace_back(lines.number(), line);
    }
    EXPECT_TRUE(found == expected_lines(texts[at])) << "text " << at << " of seed 17";
    EXPECT_EQ(lines.bytes(), static_cast<std::int64_t>(texts[at].size())) << "text " << at;
  }
}

TEST_F(BoundedLinesTest, may_have_as_many_bytes_as_allowed) {
  for (const std::size_t bytes : {1UL, 100UL, 65'534UL, 65'535UL, 65'536UL, 200'000UL}) {
    for (const auto* end : {"", "\n", "\nmore\n"}) {
      std::string line;
      const std::string text = "a\n" + std::string(bytes, 'x') + end;
      auto lines = lines_of(text);
      ASSERT_TRUE(*lines.next(line, bytes));
      ASSERT_TRUE(*lines.next(line, bytes)) << bytes;
      EXPECT_EQ(line.size(), bytes);
      if (bytes == 1) continue;  // the first line has as many
      auto again = lines_of(text);
      ASSERT_TRUE(*again.next(line, bytes - 1));
      const auto refused = again.next(line, bytes - 1);
      ASSERT_FALSE(refused.ok()) << bytes;
      EXPECT_EQ(refused.error().code, ErrorCode::exhausted);
      EXPECT_EQ(refused.error().line, 2);
      EXPECT_EQ(refused.error().message, file_.string() + ":2: the line has more than " +
                                             std::to_string(bytes - 1) + " bytes");
    }
  }
}

TEST_F(BoundedLinesTest, are_not_in_a_folder_or_a_missing_file) {
  for (const auto& file : {folder_.path(), folder_.path() / "none"}) {
    const auto lines = BoundedLines::open(file);
    ASSERT_FALSE(lines.ok());
    EXPECT_EQ(lines.error().code, ErrorCode::not_found);
  }
}

}  // namespace
}  // namespace watchdog::monitor
