# Runs the MLP that README.md exports: perl -Ilib run_mlp.pl libmy_mlp.so
use v5.26;
use warnings;

use Heterosis::Library;

my $mlp = Heterosis::Library->new( $ARGV[0] // 'libmy_mlp.so' );
my ($scores) = $mlp->entry('forward')->run( [ map { ( $_ % 7 ) / 7 } 0 .. 511 ] );
say "@$scores";
