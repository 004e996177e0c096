// Works on a store; prints `ok SESSION EVENT` for each event that was acknowledged.
#include <cstdio>

#include "support/store_work.h"

int main(int count, char** words) {
  if (count != 2) return 2;
  const watchdog::test::StoreWork work{.directory = words[1],
                                       .acknowledged = [](const std::string& event) {
                                         std::printf("ok %s\n", event.c_str());
                                         std::fflush(stdout);
                                       }};
  const auto trouble = work.run();
  if (trouble.empty()) return 0;
  std::printf("%s\n", trouble.c_str());
  return 1;
}
