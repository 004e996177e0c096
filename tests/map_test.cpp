// ARCHITECTURE.md names existing files and names, and its picture shows the layers. Each folder of
// the table says what belongs there.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "layers.h"

namespace watchdog {
namespace {

namespace fs = std::filesystem;
using test::may_include;
using test::Set;

const fs::path root = PROJECT_ROOT;

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The texts in backquotes.
std::vector<std::string> quoted_in(const std::string& text) {
  static const std::regex quoted("`([^`\n]+)`");
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), quoted), end; at != end; ++at)
    found.push_back((*at)[1]);
  return found;
}

bool is_path(const std::string& text) {
  static const std::regex path("[A-Za-z_.0-9-]+(/[A-Za-z_.0-9-]*)+");
  return std::regex_match(text, path);
}

/// The names on a page that the tree does not have, each with its line. A line of a recipe says
/// which names are in a file: `file`: `name`, `name`; or `file` (`name`), `other file` (`name`).
std::vector<std::string> faults_of_map(const std::string& page) {
  static const std::regex recipe(R"(\* `([^`]+)`: (.*))");
  static const std::regex remark(R"(`([^`]+)` \(([^)]*)\))");
  std::vector<std::string> faults;
  std::istringstream lines(page);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto place = std::to_string(++number) + ": ";
    for (const auto& quoted : quoted_in(line))
      if (is_path(quoted) && !fs::exists(root / quoted)) faults.push_back(place + quoted);
    const auto look = [&](const std::string& file, const std::string& said) {
      const auto source = text_of(root / file);
      for (const auto& name : quoted_in(said)) {
        const bool is_there = is_path(name) || source.find(name) != std::string::npos;
        if (!is_there) faults.push_back(place + name + " in " + file);
      }
    };
    std::smatch match;
    if (std::regex_match(line, match, recipe))
      look(match[1], std::regex_replace(match.str(2), remark, ""));
    for (std::sregex_iterator at(line.begin(), line.end(), remark), end; at != end; ++at)
      if (is_path((*at)[1])) look((*at)[1], (*at)[2]);
  }
  return faults;
}

/// An arrow for each include that does not follow from others; those of one folder stand on one
/// line.
std::string picture_of_layers() {
  std::ostringstream drawn;
  drawn << "```mermaid\ngraph LR\n";
  const auto node = [](std::string name) {
    const auto id = std::regex_replace(name, std::regex("/"), "_");
    return id == name ? id : id + "[" + name + "]";
  };
  for (const auto& [layer, below] : may_include) {
    if (layer == "support" || layer == "examples") continue;
    std::string targets;
    for (const auto& lower : below) {
      const bool follows = std::any_of(below.begin(), below.end(), [&](const std::string& other) {
        return may_include.at(other).contains(lower);
      });
      if (!follows) targets += (targets.empty() ? " --> " : " & ") + node(lower);
    }
    if (!targets.empty()) drawn << "  " << node(layer) << targets << "\n";
  }
  drawn << "```\n";
  return drawn.str();
}

/// The folder in the tree for a row of the table of layers.
fs::path place_of(const std::string& layer) {
  if (layer == "support") return root / "libwatchdog/examples" / layer;
  if (layer == "examples") return root / "libwatchdog" / layer;
  return layer.starts_with("monitor") ? root / layer : root / "libwatchdog/src" / layer;
}

/// The rest of the line of `text` that begins with this; empty: there is none.
std::string line_after(const std::string& beginning, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(beginning)) return line.substr(beginning.size());
  return "";
}

/// Everything that is wrong with the three lines on a folder's page.
std::vector<std::string> faults_of_folder(const std::string& page, const Set& below) {
  std::vector<std::string> faults;
  for (const char* beginning : {"- Belongs here: ", "- Does not belong here: "})
    if (line_after(beginning, page).size() < 10) faults.push_back(std::string("no ") + beginning);
  const std::string may = "- May include: ";
  const auto line = line_after(may, page);
  if (line.empty()) faults.push_back("no " + may);
  const auto quoted = quoted_in(line);
  for (const auto& layer : below)
    if (std::ranges::count(quoted, layer) != 1) faults.push_back(may + layer + " is missing");
  for (const auto& layer : quoted)
    if (!below.contains(layer)) faults.push_back(may + layer + " is not in tests/layers.h");
  return faults;
}

TEST(Map, the_security_model_names_a_test_for_each_threat) {
  const auto page = text_of(root / "docs/explanation/security-model.md");
  EXPECT_EQ(faults_of_map(page), std::vector<std::string>{});
  const auto begin = page.find("| Threat |");
  ASSERT_NE(begin, std::string::npos);
  std::istringstream rows(page.substr(begin, page.find("\n\n", begin) - begin));
  int threats = 0;
  for (std::string row; std::getline(rows, row); ++threats) {
    const bool does_nothing = row.find("| nothing: ") != std::string::npos;
    const auto last = row.substr(row.rfind('|', row.size() - 2) + 1);
    const bool is_named = last.find("`tests/") != std::string::npos;
    EXPECT_TRUE(is_named || does_nothing || threats < 2) << row;
  }
  EXPECT_GT(threats, 30);
}

TEST(Map, each_folder_says_what_belongs_there) {
  for (const auto& [layer, below] : may_include) {
    const auto place = place_of(layer);
    const auto design = text_of(place / "DESIGN.md");
    const auto readme = text_of(place / "README.md");
    EXPECT_NE(design.empty(), readme.empty()) << place << ": give it a DESIGN.md or a README.md";
    for (const auto& fault : faults_of_folder(design + readme, below))
      ADD_FAILURE() << place << ": " << fault;
    EXPECT_LT(std::count(design.begin(), design.end(), '\n'), 200) << place;
  }
}

/// The files that a page links to, without addresses of the web.
std::vector<fs::path> linked_from(const fs::path& page) {
  static const std::regex link(R"(\]\(([^)#:]+)(?:#[^)]*)?\))");
  const auto text = text_of(page);
  std::vector<fs::path> found;
  for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at)
    found.push_back((page.parent_path() / (*at)[1].str()).lexically_normal());
  return found;
}

TEST(Map, the_indexes_of_design_pages_link_to_each_of_them) {
  std::set<fs::path> linked{root / "libwatchdog/DESIGN.md", root / "monitor/DESIGN.md"};
  for (const auto& index : {root / "libwatchdog/DESIGN.md", root / "monitor/DESIGN.md"}) {
    for (const auto& page : linked_from(index)) {
      EXPECT_TRUE(fs::exists(page)) << index << " links to " << page;
      linked.insert(page);
    }
  }
  for (const auto& [layer, below] : may_include) {
    const auto page = place_of(layer) / "DESIGN.md";
    if (!fs::exists(page)) continue;
    EXPECT_TRUE(linked.contains(page)) << page << " is in no index";
    for (const auto& target : linked_from(page))
      EXPECT_TRUE(fs::exists(target)) << page << " links to " << target;
  }
  EXPECT_GT(linked.size(), 30U);
}

TEST(Map, public_headers_are_few_and_in_the_list_of_their_folder) {
  const fs::path folder = root / "libwatchdog/include/watchdog";
  Set headers{"exec_place.h"};  // made when the library is configured
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".h") headers.insert(entry.path().filename());
  static const std::regex row(R"(\| `([a-z_]+\.h)` \| .+ \|)");
  Set listed;
  std::istringstream lines(text_of(folder / "README.md"));
  std::smatch match;
  for (std::string line; std::getline(lines, line);)
    if (std::regex_match(line, match, row)) {
      EXPECT_TRUE(listed.insert(match.str(1)).second) << line;
    }
  EXPECT_EQ(listed, headers);
  EXPECT_LE(headers.size(), 26U) << "put a header that agents do not need into a room";
}

TEST(Map, a_wrong_line_of_a_folder_is_found) {
  const std::string page =
      "- Belongs here: requests of agents.\n- Does not belong here: x\n"
      "- May include: `facts`, `store`.\n";
  EXPECT_EQ(
      faults_of_folder(page, {"facts", "text"}),
      (std::vector<std::string>{"no - Does not belong here: ", "- May include: text is missing",
                                "- May include: store is not in tests/layers.h"}));
  EXPECT_EQ(faults_of_folder("", {}).size(), 3U);
}

TEST(Map, names_what_there_is) {
  const auto page = text_of(root / "ARCHITECTURE.md");
  EXPECT_GT(quoted_in(page).size(), 100U);
  EXPECT_LE(std::count(page.begin(), page.end(), '\n'), 250);
  for (const auto& fault : faults_of_map(page)) ADD_FAILURE() << "ARCHITECTURE.md:" << fault;
}

TEST(Map, a_missing_file_or_name_is_found) {
  EXPECT_EQ(faults_of_map("See `tests/nothing.cpp`.\n* `tests/layers.h`: `may_include`, `must`\n"
                          "* `tests/layers.h` (`may_include`, `shall`)"),
            (std::vector<std::string>{"1: tests/nothing.cpp", "2: must in tests/layers.h",
                                      "3: shall in tests/layers.h"}));
}

TEST(Map, draws_the_layers_that_are_held) {
  auto page = text_of(root / "ARCHITECTURE.md");
  const auto begin = page.find("```mermaid");
  ASSERT_NE(begin, std::string::npos);
  const auto end = page.find("```\n", begin + 3) + 4;
  if (std::getenv("WATCHDOG_DRAW") != nullptr) {
    page.replace(begin, end - begin, picture_of_layers());
    std::ofstream(root / "ARCHITECTURE.md") << page;
    return;
  }
  EXPECT_EQ(page.substr(begin, end - begin), picture_of_layers())
      << "draw it again: WATCHDOG_DRAW=1 tidy_test --gtest_filter='Map.*'";
}

}  // namespace
}  // namespace watchdog
