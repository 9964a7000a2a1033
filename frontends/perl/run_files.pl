# Runs a program on arrays in files, for ../check.sh:
# perl -Ilib run_files.pl LIBRARY FOLDER CALLS [SIZE...]
use v5.26;
use warnings;

use Time::HiRes qw(time);

use Heterosis::Library;

my ( $path, $folder, $calls, @sizes ) = @ARGV;
my $entry  = Heterosis::Library->new($path)->entry->at( map { 0 + $_ } @sizes );
my $number = 0;
my @inputs = map { content( "$folder/input" . $number++ ) } $entry->inputs;
$number = 0;
for my $output ( $entry->run_packed(@inputs) ) {
    open my $file, '>:raw', "$folder/output" . $number++ or die "$folder: $!";
    print {$file} $output;
    close $file or die "$folder: $!";
}
my $before = time;
$entry->run_packed(@inputs) for 1 .. $calls;
say( ( time - $before ) / $calls * 1e6 );

sub content {
    my ($name) = @_;
    local $/;
    open my $file, '<:raw', $name or die "$name: $!";
    return scalar <$file>;
}
