#include <stdio.h>

int main(void) {
    int words = 0, inside = 0, c;
    while ((c = getchar()) != EOF) {
        int is_space = c == ' ' || c == '\n' || c == '\t';
        words += inside == 0 && !is_space;
        inside = !is_space;
    }
    printf("%d\n", words);
    return 0;
}
