// Opens the libraries whose paths it reads, one a line, and answers each: "opened", or why not.
#include <iostream>

#include "heterosis.hpp"

int main() {
  std::string path;
  while (std::getline(std::cin, path)) {
    try {
      const heterosis::Library library(path);
      std::cout << "opened" << std::endl;
    } catch (const heterosis::Error& error) {
      std::cout << "refused: " << error.what() << std::endl;
    }
  }
}
