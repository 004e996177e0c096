/// \file
/// The least that taking reports as lines of JSON costs: parse each, insert its row. Reads state
/// changes from a file, of which `data` is the last field and has 200 bytes; prints the CPU seconds
/// an event. http_bench.py compares the monitor with it.
#include <fstream>
#include <nlohmann/json.hpp>

#include "bare_sqlite.h"
#include "support/temp_dir.h"

namespace watchdog::bench {
namespace {

constexpr std::size_t per_transaction = 1'000;
constexpr std::size_t data_bytes = 200;

void run(const char* file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  if (lines.size() < 2 * per_transaction) give_up(std::string(file) + " has too few lines");

  const test::TempDir dir;
  BareSqlite sqlite(dir / "bare.db", 1);
  const auto store_rows = [&](std::size_t first) {
    sqlite.begin();
    for (std::size_t at = first; at < std::min(first + per_transaction, lines.size()); ++at) {
      const std::string_view line = lines[at];
      const auto parsed = nlohmann::json::parse(line);
      const auto& type = parsed.at("type").get_ref<const std::string&>();
      sqlite.insert(0, type, line.substr(line.size() - 1 - data_bytes, data_bytes));
    }
    sqlite.commit();
  };
  store_rows(0);  // does not count
  const double seconds = cpu_of([&] {
    for (std::size_t at = per_transaction; at < lines.size(); at += per_transaction) store_rows(at);
  });
  std::printf("%.12f\n", seconds / static_cast<double>(lines.size() - per_transaction));
}

}  // namespace
}  // namespace watchdog::bench

int main(int argc, char** argv) {
  if (argc != 2) watchdog::bench::give_up(std::string("usage: ") + argv[0] + " FILE");
  watchdog::bench::run(argv[1]);
}
